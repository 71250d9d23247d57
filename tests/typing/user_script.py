"""What a user writes: every verb of the public face, with the types of its results revealed.

mypy and pyright read it in their strict modes; nobody runs it. A new verb, or a new form of one, gets a line.
"""

from pathlib import Path
from typing import reveal_type

import torch
from torch import nn

import longspan
from longspan import patterns
from longspan.pipeline.packing import Batch

TEXTS = ["one text", "another"]


def load() -> longspan.Reader:
    reveal_type(longspan.__version__)
    reveal_type(longspan.load(Path("folder"), "answer", device="cpu", dtype=torch.float32, overflow="window"))
    reveal_type(
        longspan.load("name/on-the-hub", labels=["good", "bad"], precision="int8", local_files_only=True)
    )
    reader = longspan.load("default")
    reveal_type(reader)
    reveal_type(reader.task)
    reveal_type(reader.labels)
    reveal_type(reader.options)
    reveal_type(reader.tokenizer)
    reveal_type(reader.model)
    return reader


def encode(reader: longspan.Reader) -> None:
    reveal_type(reader.encode("a text"))
    reveal_type(reader.encode(TEXTS))
    reveal_type(
        reader.encode((text for text in TEXTS), normalize=True, pooling="mean", overflow="window", limit=512)
    )
    reveal_type(reader.encode("a text", convert_to_tensor=True))
    reveal_type(reader.encode(TEXTS, convert_to_tensor=True, normalize_embeddings=True, batch_size=8))
    reveal_type(reader.encode("a text", convert_to_numpy=False))
    reveal_type(reader.encode(TEXTS, convert_to_numpy=False, truncate_dim=64, device="cpu"))
    reveal_type(reader.encode(TEXTS, precision="int8"))
    reveal_type(reader.encode("a text", precision="ubinary", normalize_embeddings=True))
    reveal_type(reader.encode("a text", output_value="token_embeddings"))
    reveal_type(reader.encode(TEXTS, output_value="token_embeddings"))
    reveal_type(reader.encode("a text", output_value=None))
    reveal_type(reader.encode(TEXTS, output_value=None))
    reveal_type(reader.encode(sentences=TEXTS))
    reveal_type(reader.encode_query("a question"))
    reveal_type(reader.encode_query(TEXTS, convert_to_tensor=True))
    reveal_type(reader.encode_document(TEXTS))
    reveal_type(reader.encode_document("a text", convert_to_tensor=True))
    reveal_type(reader.encode_tokens("a text"))
    reveal_type(reader.encode_tokens(TEXTS))
    reveal_type(reader.encode_sparse("a text", prompt_name="query"))
    reveal_type(reader.encode_sparse(TEXTS))
    reveal_type(reader.encode_multi_vector("a text"))
    reveal_type(reader.encode_multi_vector(TEXTS, prompt="query: "))
    detailed = reader.encode_with_details("a text")
    reveal_type(detailed)
    reveal_type(detailed["n_tokens"] + detailed["truncated"] + detailed["windows"])
    reveal_type([each["n_tokens"] for each in reader.encode_with_details(TEXTS, tokens=True)])
    reveal_type(reader.similarity(reader.encode("a text"), reader.encode(TEXTS)))


def late_chunking(reader: longspan.Reader) -> None:
    passages = reader.encode_passages("a long text", [(0, 4), (5, 9)], normalize=True)
    reveal_type(passages)
    reveal_type((passages.vectors, passages.spans, passages.texts, passages.windows, len(passages)))
    reveal_type(reader.encode_passages(Path("contract.pdf")).texts)


def instead_of_sentence_transformers(reader: longspan.Reader) -> None:
    reader.max_seq_length = 512
    reader.similarity_fn_name = "dot"
    reveal_type((reader.max_seq_length, reader.similarity_fn_name, reader.device, reader.model_card_data))
    reveal_type(reader.to("cpu").get_sentence_embedding_dimension() + reader.get_embedding_dimension())
    reveal_type(reader.tokenize(TEXTS))
    reveal_type(
        reader.similarity_pairwise(reader.encode(TEXTS), reader.encode(TEXTS, convert_to_tensor=True))
    )
    pool = reader.start_multi_process_pool(["cpu", "cpu"])
    reveal_type(pool)
    reveal_type(reader.encode(TEXTS, pool=pool, chunk_size=100))
    reveal_type(reader.encode_multi_process(TEXTS, pool))
    reader.stop_multi_process_pool(pool)


def rank(reader: longspan.Reader) -> None:
    reader.check_ranks()
    ranked = reader.rank("who?", TEXTS, top_k=1, return_documents=True)
    reveal_type(ranked)
    reveal_type((ranked[0]["corpus_id"], ranked[0]["score"], ranked[0].get("text"), ranked[0]["windows"]))
    reveal_type(reader.predict(("who?", "a text")))
    reveal_type(reader.predict([("who?", text) for text in TEXTS], show_progress_bar=False))
    reveal_type(reader.encode_query_tokens("who?"))
    reveal_type(reader.encode_document_tokens("a text"))
    queries, documents = reader.encode_query_tokens(TEXTS), reader.encode_document_tokens(TEXTS)
    reveal_type((queries, documents))
    reveal_type(reader.max_sim(queries, documents))


def classify(reader: longspan.Reader) -> None:
    result = reader.classify("a text")
    reveal_type(result)
    reveal_type(result["label"])
    reveal_type(result["score"])
    reveal_type(result["n_tokens"] + result["truncated"] + result["windows"])
    reveal_type(reader.classify(TEXTS))
    reveal_type(reader.classify({"text": "a text", "text_pair": "its pair"}))
    several = reader.classify("a text", top_k=3)
    reveal_type(several)
    reveal_type(several[0]["label"])
    reveal_type(several.n_tokens + several.truncated + several.windows)
    reveal_type(reader.classify(TEXTS, top_k=None, deterministic=True))


def tag(reader: longspan.Reader) -> None:
    result = reader.tag("a text")
    reveal_type(result)
    reveal_type([(each["score"], each["word"], each["start"], each["end"]) for each in result])
    reveal_type(result.n_tokens)
    reveal_type(reader.tag(TEXTS, aggregation_strategy="simple", ignore_labels=["O"]))


def answer(reader: longspan.Reader) -> None:
    result = reader.answer("who?", "the whole contract")
    reveal_type(result)
    reveal_type((result["answer"], result["score"], result["start"], result["end"], result["windows"]))
    reveal_type(reader.answer(["who?", "when?"], "the whole contract"))
    reveal_type(reader.answer("who?", ["one contract", "another"], max_answer_len=20))
    reveal_type(reader.answer([{"question": "who?", "context": "the whole contract"}]))
    several = reader.answer("who?", "the whole contract", top_k=3, handle_impossible_answer=True)
    reveal_type(several)
    reveal_type(several[0]["answer"])
    reveal_type(several.truncated)


def choose(reader: longspan.Reader) -> None:
    result = reader.choose("a prompt", ["a choice", "another"])
    reveal_type(result)
    reveal_type((result["index"], result["choice"], result["score"], result["scores"], result["n_tokens"]))
    reveal_type(reader.choose(TEXTS, [["a", "b"], ["c", "d"]]))
    reveal_type(reader.choose([{"prompt": "a prompt", "choices": ["a", "b"]}]))


def fill(reader: longspan.Reader) -> None:
    reveal_type(reader.fill("It was <mask>.", top_k=3))
    reveal_type(reader.fill(TEXTS))


def summarize(reader: longspan.Reader) -> None:
    def show(piece: str) -> None:
        print(piece, end="")

    result = reader.summarize("a long text", stream=show)
    reveal_type(result)
    reveal_type((result[0]["summary_text"], result[0]["n_tokens"], result[0]["truncated"]))
    reveal_type(reader.summarize(Path("paper.pdf"), query="the method", num_beams=4, max_new_tokens=200))
    reveal_type(reader.summarize([Path("paper.pdf"), "a text"], seed=7, do_sample=True, overflow="truncate"))


def prepare(reader: longspan.Reader) -> None:
    batches = reader.prepare(TEXTS, labels=["good", "bad"], limit=512)
    reveal_type(batches)
    reveal_type((batches[0].ids, batches[0].layout, batches[0].token_types, batches[0].index))
    reveal_type((batches[0].labels, batches[0].texts))


def save(reader: longspan.Reader) -> None:
    reader.save(Path("folder"))


def lengthen() -> None:
    report = longspan.lengthen(
        "roberta-base", 4096, out="folder", pattern="longformer", radius=256, force=True
    )
    reveal_type(report)
    reveal_type((report.to, report.max_difference, report.loads_in_transformers))
    reveal_type(report.as_json())


def search(reader: longspan.Reader) -> None:
    with longspan.Index.open(Path("my-index"), reader) as index:
        index.embed(progress=False)
        missing: list[Path] = index.missing
        removed: int = index.remove(missing) + index.prune()
        share: float = index.share_read
        sizes: dict[str, int] = index.sizes
        print(removed, share, sizes)
        index.clear()
        reveal_type(index)
        report = index.add(["contracts/", Path("notes.md")], progress=False)
        reveal_type(report)
        reveal_type((report.added, report.n_tokens))
        hits = index.search("who may end the contract?", 5, mode="hybrid", inside="contracts/")
        reveal_type(hits)
        reveal_type(hits[0])
        reveal_type(hits[:3])
        index.load_reranker(Path("reranker"))
        reveal_type(index.search("who pays?", rerank="name/on-the-hub", rerank_top=20).is_reranked)
        reveal_type(index.search("who pays?", rerank=reader))
        reveal_type(index.search("who pays?", rerank=lambda pairs: [float(len(text)) for _, text in pairs]))
        reveal_type([(hit.file, hit.page, hit.line, hit.score, hit.text) for hit in hits])
        reveal_type(hits[0].as_dict())
        reveal_type(index.files)
        reveal_type(index.reader)
        index.verify()


def inspect() -> None:
    picture = longspan.draw("longformer-base", 1024, marked=[0])
    reveal_type(picture)
    reveal_type((picture.text(), picture.svg(), picture.receptive_field.tokens))
    report = longspan.explain("longformer-base", 4096, gflops=100)
    reveal_type(report)
    reveal_type((report.dominates, report.seconds, report.memory["peak"], report.receptive_field.complete))
    reveal_type(report.as_json())


def attend() -> None:
    layout = longspan.Layout.packed([70, 41], marked=[[0], [0, 5]])
    reveal_type(layout)
    reveal_type((layout.size, layout.documents, layout.marked_rows))
    reveal_type(layout.take(layout.marked_rows))
    reveal_type(layout.pool(kernel=5, stride=4))
    reveal_type(longspan.Layout.join(layout, layout))
    reveal_type(longspan.Layout.padded(torch.ones(2, 5, dtype=torch.bool)))
    pattern = (patterns.Window(8) | patterns.GlobalTokens()) & patterns.Causal()
    reveal_type(pattern)
    reveal_type(patterns.Window(8) + patterns.RandomBlocks(8, 2, "uniform"))
    reveal_type((pattern.explain(), pattern.draw(32), pattern.matrix(layout)))
    reveal_type(patterns.Pattern.from_json(pattern.to_json()))
    plan = longspan.plan(pattern, layout, heads=2, labels=longspan.ClippedDistance(8))
    reveal_type(plan)
    reveal_type((plan.explain(), plan.pairs_allowed, plan.to("cpu")))
    q = k = v = torch.zeros(layout.size, 2, 4)
    terms = (longspan.ScoreTable(torch.zeros(17, 2)), longspan.RelativeKeys(torch.zeros(17, 2, 4)))
    reveal_type(longspan.attention(q, k, v, plan))
    reveal_type(
        longspan.attention(q, k, v, plan, scale=0.5, terms=terms, dropout=longspan.Dropout(0.1, seed=7))
    )
    part = longspan.attention(q, k, v, plan, return_lse=True, backend="tiled")
    reveal_type(part)
    reveal_type(longspan.merge(part, part))
    reveal_type(longspan.attention_weights(q, k, plan, rows=[0, 2]).probabilities)


def accelerate(model: nn.Linear) -> None:
    reveal_type(longspan.hf.accelerate(model, activations=True))
    reveal_type(longspan.hf.restore(model))
    reveal_type(longspan.hf.accelerated(model))


def export(reader: longspan.Reader) -> None:
    reveal_type(longspan.export.onnx(reader.model, Path("model.onnx"), length=512, opset=18))


def train(reader: longspan.Reader, model: nn.Linear) -> None:
    examples = reader.examples(["a text"], labels=["yes"])
    reveal_type(examples)
    reveal_type(examples.lengths)
    reveal_type(examples.batches())
    optimizer = longspan.training.AdamW(lr=1e-4)
    evaluation = longspan.training.Evaluation(run=lambda model: {"loss": 1.0}, every=0.5)
    report = longspan.finetune(
        reader, ["a text"], labels=["yes"], out="out", epochs=2, optimizer=optimizer, validation=0.5
    )
    reveal_type(report)
    reveal_type(report.metrics)

    def loss(model: nn.Module, batch: Batch) -> longspan.training.Loss:
        return longspan.training.Loss(model(batch.ids), 1.0)

    reveal_type(longspan.training.train(model, examples, loss, out="out", steps=3, evaluation=evaluation))
    reveal_type(longspan.data.collator(reader)([{"text": "a text", "label": "yes"}]))


def recover() -> str:
    try:
        load()
    except (longspan.InputError, longspan.BackendError) as error:
        reveal_type(error)
    except longspan.LongspanError as error:
        return str(error)
    return ""

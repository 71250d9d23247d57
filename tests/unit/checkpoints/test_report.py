"""A load report says what does not fit, a line for each kind of name."""

from longspan.checkpoints.report import LoadReport


def test_a_report_groups_the_names_of_layers() -> None:
    report = LoadReport(
        missing=("layers.0.c", "layers.1.c"), unexpected=("old",), mismatched=(("b", (5,), (7,)),)
    )
    assert report
    assert str(report).splitlines() == [
        "missing     layers.*.c (2 tensors)",
        "unexpected  old",
        "mismatched  b: is (5,), must be (7,)",
    ]


def test_an_empty_report_says_that_everything_fits() -> None:
    assert not LoadReport()
    assert str(LoadReport()) == "everything fits"

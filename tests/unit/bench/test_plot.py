from xml.etree import ElementTree

from longspan.bench.plot import Axis, chart, decades
from longspan.bench.report import Point

POINTS = [Point("native", 512, 1.5, 0.2), Point("native", 1024, 3.1, None), Point("full", 512, 2.0, 9.0)]
SVG = "{http://www.w3.org/2000/svg}"


def test_an_axis_is_logarithmic() -> None:
    axis = Axis(1, 10_000, 0, 400)
    assert [axis.at(value) for value in (1, 10, 10_000)] == [0, 100, 400]


def test_a_value_below_an_axis_stays_on_its_edge() -> None:
    assert Axis(1, 100, 20, 220).at(0.001) == 20


def test_decades_enclose_their_values() -> None:
    assert decades(2, 900) == [1, 10, 100, 1000]
    assert decades(10, 10) == [10, 100]


def test_the_chart_is_well_formed_and_draws_every_measured_point() -> None:
    root = ElementTree.fromstring(chart(POINTS, 'cpu "a<b"'))
    in_legend = 4
    assert len(root.findall(f"{SVG}circle")) == len(POINTS) + 2 + in_legend
    assert root.findall(f"{SVG}text")[-1].text == 'cpu "a<b"'

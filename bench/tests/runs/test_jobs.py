from computing import measure

from fewlier_bench.runs.jobs import Job, describe_machine, n_cores
from fewlier_bench.runs.results import Cell

CELLS = [Cell("paper", "Pima", "LOF", 3, split) for split in range(3)]


def test_a_job_goes_on_with_the_cells_that_are_not_done():
    job = Job({cell: cell.split for cell in CELLS}, "abc", measure, 1.0)
    rest = job.without({CELLS[1], Cell("paper", "Wilt", "LOF", 3, 0)})
    assert rest.cells == (CELLS[0], CELLS[2])
    assert rest.seeds == {CELLS[0]: 0, CELLS[2]: 2}
    assert [cell for cell, _ in rest.compute(rest.cells)] == [CELLS[0], CELLS[2]]
    assert job.cells == tuple(CELLS)


def test_a_machine_is_described_by_processor_cores_and_gpu():
    alone = describe_machine()
    assert alone.endswith(f", {n_cores()} cores")
    assert len(alone) > len(f", {n_cores()} cores")
    assert describe_machine("Some GPU") == f"Some GPU, {alone}"

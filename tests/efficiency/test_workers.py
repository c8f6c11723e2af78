"""Threads that no parallel region explains."""

from efficiency.builders import observables

from popmodel.efficiency.region_efficiencies import apart, remarks


def test_processes_whose_threads_all_take_part_need_no_word() -> None:
    run = observables([[8, 4], [8, 4]], 10, omp_useful=[[4, 4], [4, 4]])
    assert remarks(run) == []
    assert not apart(run)


def test_threads_that_call_mpi_are_named_and_led_to_a_family() -> None:
    run = observables([[8, 2, 2, 2], [8, 0, 0, 0]], 10, in_mpi=[0, 5, 6, 7, 0, 0, 0, 0])
    assert remarks(run) == [
        "rank 0: threads 1-3 call MPI but belong to no parallel region (6 s of useful time, "
        "counted outside regions, 18 s in MPI); the families mpi and mpi-additive count master "
        "threads only, hybrid-additive and talp all"
    ]
    assert apart(run)


def test_a_thread_that_only_calls_mpi() -> None:
    run = observables([[8, 0], [8, 0]], 10, in_mpi=[0, 1, 0, 2])
    assert remarks(run)[0].startswith(
        "ranks 0-1: thread 1 call MPI but belong to no parallel region (3 s in MPI)"
    )


def test_processes_with_other_threads_are_counted() -> None:
    run = observables([[8, 1, 0, 1], [8, 1, 0, 0], [8, 1]], 10, has_mpi=False)
    assert remarks(run) == [
        "rank 0: threads 1, 3 and others of 2 processes run but belong to no parallel region (4 s "
        "of useful time, counted outside regions)"
    ]


def test_each_kind_has_its_sentence() -> None:
    run = observables([[8, 4, 1, 0]], 10, omp_useful=[[4, 3, 0, 0]], in_mpi=[0, 0, 0, 2])
    first, second, third = remarks(run)
    assert first.startswith("rank 0: thread 3 calls MPI but belongs to no parallel region (2 s in")
    assert second.startswith("rank 0: thread 2 runs but belongs to no parallel region (1 s of")
    assert third.startswith("rank 0: thread 1 also runs outside its parallel regions (1 s of")
    assert [";" in each for each in (first, second, third)] == [False, False, True]


def test_mpi_inside_regions_is_no_time_outside_of_them() -> None:
    run = observables([[8, 4.01]], 10, omp_useful=[[8, 4]], in_mpi=[0, 5])
    assert len(remarks(run)) == 1
    assert not apart(run)


def test_a_little_is_told_with_the_other_notes() -> None:
    run = observables([[8, 0.1]], 10, has_mpi=False)
    assert len(remarks(run)) == 1
    assert not apart(run)

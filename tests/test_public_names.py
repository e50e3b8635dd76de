import fewlier


def test_all_is_sorted_and_without_repeats():
    assert list(fewlier.__all__) == sorted(set(fewlier.__all__))


def test_every_public_name_can_be_imported():
    for name in fewlier.__all__:
        assert getattr(fewlier, name) is not None


def test_dir_lists_every_public_name():
    assert set(fewlier.__all__) <= set(dir(fewlier))

"""What the network is told, against slow references; and what its answers do not depend on."""

import numpy as np
import pytest
import torch
from sklearn.neighbors import NearestNeighbors

from fewlier_bench.prior.cells import describe
from fewlier_bench.prior.distances import distances
from fewlier_bench.prior.network import Label, Network

N, K, Q, D = 40, 3, 12, 5


@pytest.fixture
def values():
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(2, N + K + Q, D, generator=generator)
    values[..., 3] = (values[..., 3] * 2).round()  # ties
    values[..., 4] = torch.randint(4, values.shape[:2], generator=generator).float()
    values[torch.rand(values.shape, generator=generator) < 0.05] = torch.nan
    return values


@pytest.fixture
def is_category():
    return torch.tensor([[False, False, False, False, True]] * 2)


@pytest.fixture
def labels():
    one = [Label.NORMAL] * N + [Label.ANOMALY] * K + [Label.ASKED] * Q
    return torch.tensor([one, one])


@pytest.fixture
def network():
    network = Network(width=16, depth=2, heads=2)
    with torch.random.fork_rng():
        for number, p in enumerate(network.parameters()):
            p.data = 0.3 * torch.randn(p.shape, generator=torch.Generator().manual_seed(number))
    return network.eval()


def test_a_normal_row_is_described_like_a_new_row_beside_the_others(values, is_category):
    facts = describe(values, is_category, N).facts
    for row in range(0, N, 7):
        others = [i for i in range(N) if i != row]
        alone = describe(values[:, [*others, row]], is_category, N - 1).facts[:, -1]
        for fact in (0, 3, 4, 5, 7):  # those that need no spread of the column
            torch.testing.assert_close(facts[:, row, :, fact], alone[:, :, fact])


def test_equal_cells_and_unseen_levels_are_counted(is_category):
    column = [0.0, 0.0, 0.0, 1.0, 1.0, 2.0, 9.0]  # the last one is asked about
    values = torch.tensor(column)[None, :, None].expand(2, -1, D)
    cells = describe(values, is_category, 6)
    share, is_alone = cells.facts[0, :, 4, 3] ** 2, cells.facts[0, :, 4, 4]
    assert share.tolist() == pytest.approx([0.4, 0.4, 0.4, 0.2, 0.2, 0.0, 0.0])
    assert is_alone.tolist() == [0, 0, 0, 0, 0, 1, 1]
    assert cells.levels[0, :, 4].tolist() == [1, 1, 1, 2, 2, 0, 0]
    assert not cells.levels[0, :, 0].any()  # of numbers


def test_distances_are_those_of_the_rows_nearest_without_themselves(values):
    numbers = values[:1, :, :3].nan_to_num()
    cells = describe(numbers, torch.zeros(1, 3, dtype=torch.bool), N)
    found = distances(cells, N, K)[0].exp() - 1e-3
    points = cells.facts[0, :, :, 0].numpy()
    nearest = NearestNeighbors(n_neighbors=4).fit(points[:N]).kneighbors(points)[0]
    own = np.arange(len(points)) < N
    expected = np.where(own[:, None], nearest[:, 1:4], nearest[:, 0:3])
    np.testing.assert_allclose(found[:, 0], expected[:, 0], atol=1e-3)
    np.testing.assert_allclose(found[:, 1], expected.mean(1), atol=1e-3)


def test_the_correlated_distance_of_a_normal_row_leaves_it_out(values):
    numbers = values[:1, :, :3].nan_to_num()
    cells = describe(numbers, torch.zeros(1, 3, dtype=torch.bool), N)
    squared = (distances(cells, N, K)[0, :, 4] * 2).exp() - 1e-3
    points = cells.facts[0, :, :, 0].double()
    for row in (0, 11, 39):
        others = points[[i for i in range(N) if i != row]]
        covariance = others.T @ others / N + 0.1 * torch.eye(3)
        expected = points[row] @ torch.linalg.solve(covariance, points[row])
        assert float(squared[row]) == pytest.approx(float(expected), rel=1e-3)


def test_answers_do_not_depend_on_the_order_of_rows_and_columns(
    network, values, is_category, labels
):
    generator = torch.Generator().manual_seed(1)
    before = network(values, is_category, labels, N, K)
    rows = torch.cat(
        [
            torch.randperm(N, generator=generator),
            N + torch.randperm(K, generator=generator),
            N + K + torch.arange(Q).flip(0),
        ]
    )
    columns = torch.tensor([4, 2, 0, 3, 1])
    after = network(values[:, rows][..., columns], is_category[:, columns], labels, N, K)
    torch.testing.assert_close(after.flip(1), before, atol=2e-3, rtol=1e-3)


def test_a_row_is_answered_alone_as_among_others(network, values, is_category, labels):
    together = network(values, is_category, labels, N, K)
    for row in range(Q):
        known = [*range(N + K), N + K + row]
        alone = network(values[:, known], is_category, labels[:, known], N, K)
        torch.testing.assert_close(alone[:, 0], together[:, row], atol=2e-3, rtol=1e-3)


def test_what_labels_say_counts(network, values, is_category, labels):
    before = network(values, is_category, labels, N, K)
    said = labels.masked_fill(labels == Label.NORMAL, Label.UNLABELLED)
    assert not torch.allclose(network(values, is_category, said, N, K), before)


def test_stored_weights_tell_the_size_of_their_network(network):
    again = Network.of({name: p.clone() for name, p in network.state_dict().items()})
    assert again.row.out_features == 16
    assert len(again.blocks) == 2

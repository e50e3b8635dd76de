import subprocess
import sys

import pytest
import torch

from fewlier.training.adam import Adam


def gradients(parameters, step):
    """Set gradients of very different sizes; one parameter has none in some steps."""
    generator = torch.Generator().manual_seed(step)
    for i, p in enumerate(parameters):
        p.grad = 10.0 ** (3 * i - 4) * torch.randn(p.shape, generator=generator)
    if step % 3 == 0:
        parameters[-1].grad = None


@pytest.mark.slow
def test_steps_are_those_of_torch_bit_for_bit():
    start = [torch.randn(4, *shape) for shape in ((3, 5), (5,), (2,))]
    ours, theirs = ([p.clone().requires_grad_() for p in start] for _ in range(2))
    one, other = Adam(ours, 0.01), torch.optim.Adam(theirs, 0.01, fused=True)
    for step in range(1, 7):
        gradients(ours, step)
        gradients(theirs, step)
        one.step()
        other.step()
        assert all(p.grad is None for p in ours)
        assert all(map(torch.equal, ours, theirs))


@pytest.mark.slow
def test_a_fit_does_not_load_the_compiler():
    code = "import sys, numpy as np; from fewlier import AnomalyDetector, Made, Training; "
    code += "X = np.random.default_rng(0).normal(size=(60, 2)); "
    code += (
        "tiny = {'density': Made(hidden=(4,)), 'training': Training(lambdas=(0,), max_epochs=1)}; "
    )
    code += "d = AnomalyDetector(**tiny, false_alarm_rate=0.4); "
    code += "d.fit(X).predict(X); print(*{'torch._dynamo', 'torch._inductor', 'sympy'} & "
    code += "set(sys.modules))"
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""

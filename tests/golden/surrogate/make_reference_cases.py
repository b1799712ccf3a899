#!/usr/bin/env python3
"""Writes the reference cases beside this file: predictions of scikit-learn, BoTorch and GPyTorch at fixed hyperparameters.

  python3 make_reference_cases.py      (numpy, scikit-learn, torch, gpytorch, botorch)

Every number is a double. A point's columns, lengthscales and noise variances are those that the other program got, so
tests/surrogate/reference_cases_test.cpp must convert them to krigtune's theta.
"""

import json
import pathlib
import platform

import botorch
import gpytorch
import numpy as np
import sklearn
import torch
from botorch.models import SingleTaskGP
from botorch.models.kernels import CategoricalKernel
from gpytorch.kernels import ConstantKernel, MaternKernel, RBFKernel, ScaleKernel
from gpytorch.means import ZeroMean
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel as Amplitude
from sklearn.gaussian_process.kernels import Matern

FOLDER = pathlib.Path(__file__).parent


def function(x):
    return np.sin(5 * x[:, 0]) + x[:, 1] ** 2 - 0.5 * x[:, -1]


def write(name, case):
    case = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in case.items()}
    lines = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in case.items())
    (FOLDER / f"{name}.json").write_text("{\n" + lines + "\n}\n")


def versions(**modules):
    return {"python": platform.python_version(), **{k: m.__version__ for k, m in modules.items()}}


def matern52():
    rng = np.random.default_rng(1)
    x, at = rng.random((25, 4)), rng.random((15, 4))
    y = function(x) + 0.05 * rng.standard_normal(25)
    lengthscale, signal, noise = np.array([0.3, 0.5, 1.7, 0.8]), 1.4, 0.01 * (1 + rng.random(25))
    kernel = Amplitude(signal) * Matern(lengthscale, nu=2.5)
    gp = GaussianProcessRegressor(kernel, alpha=noise, optimizer=None).fit(x, y)
    mean, stddev = gp.predict(at, return_std=True)
    write("matern52", {
        "versions": versions(numpy=np, sklearn=sklearn), "lengthscale": lengthscale, "signal_variance": signal,
        "ordered": x, "values": y, "noise_variance": noise, "at_ordered": at, "mean": mean, "variance": stddev ** 2,
        "log_marginal_likelihood": float(gp.log_marginal_likelihood_value_)})


def in_botorch(x, y, noise, kernel, at):
    """Mean, variance and log marginal likelihood of a zero-mean process."""
    torch.set_default_dtype(torch.float64)
    tensor = torch.from_numpy
    model = SingleTaskGP(tensor(x), tensor(y)[:, None], tensor(noise)[:, None], covar_module=kernel,
                         mean_module=ZeroMean(), outcome_transform=None)
    with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False):
        model.train()
        prior = model.likelihood(model(*model.train_inputs))
        likelihood = prior.log_prob(model.train_targets).item()
        posterior = model.posterior(tensor(at))
    return posterior.mean.numpy()[:, 0], posterior.variance.numpy()[:, 0], likelihood


def squared_exponential():
    rng = np.random.default_rng(2)
    x, at = rng.random((30, 10)), rng.random((15, 10))
    y = function(x) + 0.02 * rng.standard_normal(30)
    lengthscale, signal, noise = np.linspace(0.8, 2.6, 10), 2.5, np.full(30, 4e-4)
    kernel = ScaleKernel(RBFKernel(ard_num_dims=10))
    kernel.base_kernel.lengthscale = torch.from_numpy(lengthscale)
    kernel.outputscale = signal
    mean, variance, likelihood = in_botorch(x, y, noise, kernel.double(), at)
    write("squared_exponential", {
        "versions": versions(numpy=np, torch=torch, gpytorch=gpytorch, botorch=botorch), "lengthscale": lengthscale,
        "signal_variance": signal, "ordered": x, "values": y, "noise_variance": noise, "at_ordered": at, "mean": mean,
        "variance": variance, "log_marginal_likelihood": likelihood})


def mixed():
    """A product of Matern 3/2 over three ordered columns and BoTorch's exp(-mean_j [c_j differs] / l_j) over two
    categories, and a constant with a normal prior."""
    rng = np.random.default_rng(3)
    x = np.hstack([rng.random((40, 3)), rng.integers(0, 3, (40, 2))])
    y = function(x[:, :3]) + 0.4 * x[:, 3] - 0.1 * (x[:, 4] == 2) + 0.05 * rng.standard_normal(40)
    lengthscale, category_lengthscale = np.array([0.4, 0.9, 1.5]), np.array([0.7, 2.0])
    signal, constant, noise = 1.8, 2.2, 0.0025 * (1 + rng.random(25))
    x, at, y = x[:25], x[25:], y[:25]
    matern = MaternKernel(nu=1.5, ard_num_dims=3, active_dims=[0, 1, 2])
    matern.lengthscale = torch.from_numpy(lengthscale)
    hamming = CategoricalKernel(ard_num_dims=2, active_dims=[3, 4])
    hamming.lengthscale = torch.from_numpy(category_lengthscale)
    product = ScaleKernel(matern * hamming)
    product.outputscale = signal
    offset = ConstantKernel()
    offset.constant = torch.tensor([constant])
    mean, variance, likelihood = in_botorch(x, y, noise, (product + offset).double(), at)
    write("mixed", {
        "versions": versions(numpy=np, torch=torch, gpytorch=gpytorch, botorch=botorch), "lengthscale": lengthscale,
        "category_lengthscale": category_lengthscale, "signal_variance": signal, "constant_variance": constant,
        "ordered": x[:, :3], "categories": x[:, 3:].astype(int), "values": y, "noise_variance": noise,
        "at_ordered": at[:, :3], "at_categories": at[:, 3:].astype(int), "mean": mean, "variance": variance,
        "log_marginal_likelihood": likelihood})


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    matern52()
    squared_exponential()
    mixed()

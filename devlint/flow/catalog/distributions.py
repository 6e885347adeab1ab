"""Distributions of torch: their parameters, and what they draw and tell."""

from __future__ import annotations

ROOT = "torch.distributions."
PARAMETERS = {
    **dict.fromkeys(("Bernoulli", "ContinuousBernoulli", "Geometric"), "probs logits"),
    **dict.fromkeys(("Categorical", "OneHotCategorical", "OneHotCategoricalStraightThrough"), "probs logits"),
    **dict.fromkeys(("Cauchy", "Gumbel", "Laplace", "LogNormal", "LogisticNormal", "Normal"), "loc scale"),
    **dict.fromkeys(("Beta", "Kumaraswamy"), "concentration1 concentration0"),
    **dict.fromkeys(("Gamma", "InverseGamma"), "concentration rate"),
    **dict.fromkeys(("HalfCauchy", "HalfNormal"), "scale"),
    **dict.fromkeys(("Exponential", "Poisson"), "rate"),
    "Dirichlet": "concentration",
    "LowRankMultivariateNormal": "loc cov_factor cov_diag",
    "MultivariateNormal": "loc covariance_matrix precision_matrix scale_tril",
    "StudentT": "df loc scale",
    "Uniform": "low high",
    "VonMises": "loc concentration",
}
"""The distributions that are known, with their parameters, of which the place of any says where they draw."""
AROUND = {"Independent": 0, "TransformedDistribution": 0, "MixtureSameFamily": 1}
"""Those that are made of another one, and where that stands among the arguments."""
DRAWN = frozenset({"sample", "rsample", "sample_n"})
OF_VALUES = frozenset({"log_prob", "cdf", "icdf"})
OWN = frozenset(
    """entropy enumerate_support perplexity mean mode variance stddev probs logits loc scale low high rate concentration
    covariance_matrix scale_tril""".split()
)
"""What a distribution tells of itself."""
DIVERGENCE = frozenset({f"{ROOT}kl_divergence", f"{ROOT}kl.kl_divergence"})

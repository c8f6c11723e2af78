"""Spack package of popmodel; of the first release on, with the checksum of its source archive."""
# ruff: noqa: F403, F405

from spack.package import *


class PyPopmodelHpc(PythonPackage):
    """Analytical performance model and what-if predictor for MPI + OpenMP programs."""

    pypi = "popmodel-hpc/popmodel_hpc-0.1.0.tar.gz"

    license("BSD-3-Clause")

    version("0.1.0")

    variant("mpi", default=True, description="Measure machines and trace programs with an MPI")
    variant("plots", default=False, description="Draw pictures for papers")

    depends_on("c", type=("build", "run"))
    depends_on("cxx", type="build")
    depends_on("cmake@3.18:", type="build")
    depends_on("ninja", type="build")

    depends_on("python@3.11:", type=("build", "link", "run"))
    depends_on("py-scikit-build-core@0.10:", type="build")
    depends_on("py-nanobind@2.4:", type="build")

    depends_on("py-numpy@1.26:", type=("build", "run"))
    depends_on("py-scipy@1.11:", type=("build", "run"))
    depends_on("py-sympy@1.12:", type=("build", "run"))
    depends_on("py-pandas@2.1:", type=("build", "run"))
    depends_on("py-typer@0.16:0.28", type=("build", "run"))
    depends_on("py-rich@13.8:", type=("build", "run"))
    depends_on("py-isal@1.6:", type=("build", "run"))
    depends_on("py-tomlkit@0.13:", type=("build", "run"))
    depends_on("py-jinja2@3.1:", type=("build", "run"))
    depends_on("py-markupsafe@2.0:", type=("build", "run"))

    depends_on("mpi", when="+mpi", type="run")
    depends_on("py-matplotlib@3.8:", when="+plots", type=("build", "run"))

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        """Predict a run of the bundled example."""
        popmodel = Executable(self.prefix.bin.popmodel)
        popmodel("predict", "--procs", "16", "--threads", "4")

"""The workers of the streaming jobs on their engine: size, price, and how many a quiet stream keeps. Pure."""

from dataclasses import dataclass

from lake.engines import ENGINES
from lake.engines.description import WORKERS
from lake.settings import Settings


@dataclass(frozen=True, slots=True)
class StreamCluster:
    """The driver and the executors of one streaming job."""

    vcpus: int
    """vCPUs of an executor; each converts one task at a time."""
    min_executors: int
    driver_dollars: float
    """Price of an hour, in US dollars."""
    executor_dollars: float
    start_seconds: float
    """Assumed: from StartJobRun until the first task runs."""

    @property
    def quiet_dollars(self) -> float:
        """Price of an hour in which nothing arrives, in US dollars."""
        return self.driver_dollars + self.min_executors * self.executor_dollars


def stream_cluster(settings: Settings) -> StreamCluster:
    """The workers of each streaming job of a stage, by the prices of its settings."""
    stream = settings.stream
    engine = ENGINES[stream.engine]
    prices, driver = engine.prices(settings), engine.stream_driver(stream.worker_type)
    return StreamCluster(
        WORKERS[stream.worker_type],
        engine.min_stream_executors(stream),
        driver.at(prices),
        engine.worker(stream.worker_type).at(prices),
        engine.start_seconds,
    )

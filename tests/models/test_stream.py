"""Jobs in the background: each result once, errors raised, nothing left behind."""

import asyncio
import threading
from contextlib import asynccontextmanager, nullcontext

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prbench.models.remote.stream import stream


@settings(max_examples=20, deadline=None)
@given(count=st.integers(0, 60), concurrency=st.integers(1, 9))
def test_every_result_comes_once_and_few_jobs_run_at_once(count, concurrency):
    running = most = 0

    async def job(session, index):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return index * index

    assert sorted(stream(count, job, nullcontext, concurrency)) == [(index, index * index) for index in range(count)]
    assert most <= concurrency


def test_what_a_job_raises_is_raised_here_and_the_session_is_closed():
    closed = []

    @asynccontextmanager
    async def session():
        yield
        closed.append(True)

    async def job(_, index):
        if index == 3:
            raise LookupError(index)
        return index

    with pytest.raises(LookupError):
        list(stream(10, job, session, concurrency=2))
    assert closed == [True]


def test_a_session_that_cannot_be_opened_is_raised_here():
    def session():
        raise OSError("no door")

    async def job(_, index):
        return index

    with pytest.raises(OSError, match="no door"):
        list(stream(3, job, session, concurrency=2))
    assert "prbench-requests" not in {thread.name for thread in threading.enumerate()}

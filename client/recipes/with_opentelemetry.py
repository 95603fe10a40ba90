"""OpenTelemetry: trace ids that sort by time.

It needs the extra ``opentelemetry``.
"""

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from uuidd_client.opentelemetry import IdGenerator

trace.set_tracer_provider(TracerProvider(id_generator=IdGenerator()))
tracer = trace.get_tracer(__name__)

if __name__ == "__main__":
    for name in ("first", "second"):
        with tracer.start_as_current_span(name) as span:
            print(trace.format_trace_id(span.get_span_context().trace_id))

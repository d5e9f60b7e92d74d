// calls_order.c: streams, events, captured graphs.
#include "tests/standin/standin.h"

#include <stdlib.h>

typedef standin_graph standin_exec; // what a graph was when it was instantiated

static standin_stream *stream_of(CUstream s, const char *call) {
  return standin_live(STANDIN_STREAM, s, call);
}

static standin_stream *queued_stream(CUstream s, const char *call) {
  standin_stream *x = stream_of(s, call);
  if (x->capture)
    standin_report("%s: not while the stream is being captured", call);
  return x;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  STANDIN_ENTER(cuStreamCreate);
  if (flags != GPU_STREAM_NON_BLOCKING)
    standin_report("cuStreamCreate: a stream that waits for the default one");
  standin_stream *s = standin_new(STANDIN_STREAM, sizeof *s);
  standin_add_stream(s);
  *stream = (CUstream)(void *)s;
  return GPU_OK;
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  STANDIN_ENTER(cuStreamDestroy_v2);
  standin_stream *s = queued_stream(stream, "cuStreamDestroy");
  if (s->queue.first)
    standin_report("cuStreamDestroy: there is still work in the stream");
  standin_remove_stream(s);
  standin_end(s);
  return GPU_OK;
}

CUresult cuStreamSynchronize(CUstream stream) {
  STANDIN_ENTER(cuStreamSynchronize);
  standin_finish_stream(queued_stream(stream, "cuStreamSynchronize"));
  return standin_device_error();
}

static standin_event *event_of(CUevent e, const char *call) {
  return standin_live(STANDIN_EVENT, e, call);
}

CUresult cuEventCreate(CUevent *event, unsigned flags) {
  STANDIN_ENTER(cuEventCreate);
  if (flags != GPU_EVENT_NO_TIMING && flags != GPU_EVENT_WITH_TIME)
    return STANDIN_INVALID_VALUE;
  standin_event *e = standin_new(STANDIN_EVENT, sizeof *e);
  e->timed = flags == GPU_EVENT_WITH_TIME;
  *event = (CUevent)(void *)e;
  return GPU_OK;
}

CUresult cuEventDestroy_v2(CUevent event) {
  STANDIN_ENTER(cuEventDestroy_v2);
  standin_end(event_of(event, "cuEventDestroy"));
  return GPU_OK;
}

static standin_mark *new_mark(standin_event *e) {
  standin_mark *mark = calloc(1, sizeof *mark); // never freed: operations refer to it
  if (!mark)
    standin_report("out of memory");
  mark->before = e->latest;
  e->latest = mark;
  return mark;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  STANDIN_ENTER(cuEventRecord);
  standin_mark *mark = new_mark(event_of(event, "cuEventRecord"));
  standin_append(&queued_stream(stream, "cuEventRecord")->queue,
                 &(standin_op){.kind = STANDIN_RECORD, .mark = mark});
  return GPU_OK;
}

// In a graph there is one mark, which every run of the graph reaches anew.
CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  STANDIN_ENTER(cuEventRecordWithFlags);
  standin_stream *s = stream_of(stream, "cuEventRecordWithFlags");
  standin_event *e = event_of(event, "cuEventRecordWithFlags");
  if (flags != (s->capture ? GPU_EVENT_IN_GRAPH : 0))
    return STANDIN_INVALID_VALUE;
  standin_append(s->capture ? &s->capture->ops : &s->queue,
                 &(standin_op){.kind = STANDIN_RECORD, .mark = new_mark(e)});
  return GPU_OK;
}

// A microsecond for each operation between them, and less than one for themselves.
CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to) {
  STANDIN_ENTER(cuEventElapsedTime);
  const standin_event *a = event_of(from, "cuEventElapsedTime");
  const standin_event *b = event_of(to, "cuEventElapsedTime");
  if (!a->timed || !b->timed || !a->latest || !b->latest)
    return STANDIN_INVALID_HANDLE;
  if (!a->latest->reached || !b->latest->reached)
    return STANDIN_NOT_READY;
  *ms = (float)(b->latest->tick - a->latest->tick) * 1e-3f;
  return standin_device_error();
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  STANDIN_ENTER(cuStreamWaitEvent);
  const standin_event *e = event_of(event, "cuStreamWaitEvent");
  standin_stream *s = queued_stream(stream, "cuStreamWaitEvent");
  if (e->latest) // one that was never recorded is no reason to wait
    standin_append(&s->queue, &(standin_op){.kind = STANDIN_WAIT, .mark = e->latest});
  return flags ? STANDIN_INVALID_VALUE : GPU_OK;
}

CUresult cuEventSynchronize(CUevent event) {
  STANDIN_ENTER(cuEventSynchronize);
  standin_finish_mark(event_of(event, "cuEventSynchronize")->latest);
  return standin_device_error();
}

// --- graphs

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  STANDIN_ENTER(cuStreamBeginCapture_v2);
  standin_stream *s = queued_stream(stream, "cuStreamBeginCapture");
  if (mode != GPU_CAPTURE_THREAD)
    standin_report("cuStreamBeginCapture: what other threads do would break the capture");
  s->capture = standin_new(STANDIN_GRAPH, sizeof *s->capture);
  return GPU_OK;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  STANDIN_ENTER(cuStreamEndCapture);
  standin_stream *s = stream_of(stream, "cuStreamEndCapture");
  if (!s->capture)
    standin_report("cuStreamEndCapture: the stream is not being captured");
  *graph = (CUgraph)(void *)s->capture;
  s->capture = NULL;
  return GPU_OK;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
  STANDIN_ENTER(cuGraphInstantiateWithFlags);
  const standin_graph *g = standin_live(STANDIN_GRAPH, graph, "cuGraphInstantiate");
  standin_exec *x = standin_new(STANDIN_EXEC, sizeof *x);
  standin_copy_list(&x->ops, &g->ops);
  *exec = (CUgraphExec)(void *)x;
  return flags ? STANDIN_INVALID_VALUE : GPU_OK;
}

CUresult cuGraphDestroy(CUgraph graph) {
  STANDIN_ENTER(cuGraphDestroy);
  standin_graph *g = standin_live(STANDIN_GRAPH, graph, "cuGraphDestroy");
  standin_free_list(&g->ops);
  standin_end(g);
  return GPU_OK;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  STANDIN_ENTER(cuGraphLaunch);
  const standin_exec *x = standin_live(STANDIN_EXEC, exec, "cuGraphLaunch");
  for (const standin_op *op = x->ops.first; op; op = op->next)
    if (op->mark)
      op->mark->reached = false;
  standin_copy_list(&queued_stream(stream, "cuGraphLaunch")->queue, &x->ops);
  return GPU_OK;
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  STANDIN_ENTER(cuGraphExecDestroy);
  standin_exec *x = standin_live(STANDIN_EXEC, exec, "cuGraphExecDestroy");
  standin_free_list(&x->ops);
  standin_end(x);
  return GPU_OK;
}

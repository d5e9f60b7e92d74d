// calls_order.c: streams, events, captured graphs.
#include "tests/standin/standin.h"

#include <stdlib.h>

typedef struct standin_exec { // what a graph was when it was instantiated
  standin_list ops[STANDIN_LANES];
  standin_stream *lanes[STANDIN_LANES]; // where work of the lanes but the first is queued
  int num_lanes;
} standin_exec;

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

// In a graph it is a place for other streams to begin at, or to come back to.
CUresult cuEventRecord(CUevent event, CUstream stream) {
  STANDIN_ENTER(cuEventRecord);
  standin_stream *s = stream_of(stream, "cuEventRecord");
  standin_event *e = event_of(event, "cuEventRecord");
  if (!s->capture && standin_is_capturing())
    standin_report("cuEventRecord: on a stream beside the one that is being captured");
  e->capture = s->capture;
  standin_append(standin_work_of(s), &(standin_op){.kind = STANDIN_RECORD, .mark = new_mark(e)});
  return GPU_OK;
}

// In a graph there is one mark, which every run of the graph reaches anew.
CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  STANDIN_ENTER(cuEventRecordWithFlags);
  standin_stream *s = stream_of(stream, "cuEventRecordWithFlags");
  standin_event *e = event_of(event, "cuEventRecordWithFlags");
  if (flags != (s->capture ? GPU_EVENT_IN_GRAPH : 0))
    return STANDIN_INVALID_VALUE;
  e->capture = NULL; // its time is asked for from outside
  standin_append(standin_work_of(s),
                 &(standin_op){.kind = STANDIN_RECORD, .mark = new_mark(e), .timed = true});
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

// A stream that waits for an event of a capture belongs to the capture from then on.
static void join_capture(standin_stream *s, standin_graph *g) {
  if (g->streams[0]->capture != g)
    standin_report("cuStreamWaitEvent: the capture that the event is part of has ended");
  if (s->capture == g)
    return;
  if (s->capture || g->num_lanes == STANDIN_LANES)
    standin_report("cuStreamWaitEvent: the stream cannot be part of that capture");
  s->capture = g;
  s->lane = g->num_lanes++;
  g->streams[s->lane] = s;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  STANDIN_ENTER(cuStreamWaitEvent);
  const standin_event *e = event_of(event, "cuStreamWaitEvent");
  standin_stream *s = stream_of(stream, "cuStreamWaitEvent");
  if (e->capture)
    join_capture(s, e->capture);
  else if (s->capture || standin_is_capturing())
    standin_report("cuStreamWaitEvent: the event is not part of the capture");
  if (e->latest) // one that was never recorded is no reason to wait
    standin_append(standin_work_of(s), &(standin_op){.kind = STANDIN_WAIT, .mark = e->latest});
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
  s->capture->streams[0] = s;
  s->capture->num_lanes = 1;
  s->lane = 0;
  return GPU_OK;
}

static bool waits_for(const standin_list *l, const standin_mark *m) {
  for (const standin_op *op = l->first; op; op = op->next)
    if (op->kind == STANDIN_WAIT && op->mark == m)
      return true;
  return false;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  STANDIN_ENTER(cuStreamEndCapture);
  standin_stream *s = stream_of(stream, "cuStreamEndCapture");
  standin_graph *g = s->capture;
  if (!g || s->lane != 0)
    standin_report("cuStreamEndCapture: the capture did not begin with this stream");
  for (int i = 1; i < g->num_lanes; i++) {
    const standin_op *last = g->ops[i].last;
    if (last->kind != STANDIN_RECORD || !waits_for(&g->ops[0], last->mark))
      standin_report("cuStreamEndCapture: work of another stream is not waited for");
  }
  for (int i = 0; i < g->num_lanes; i++)
    g->streams[i]->capture = NULL;
  *graph = (CUgraph)(void *)g;
  return GPU_OK;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
  STANDIN_ENTER(cuGraphInstantiateWithFlags);
  const standin_graph *g = standin_live(STANDIN_GRAPH, graph, "cuGraphInstantiate");
  standin_exec *x = standin_new(STANDIN_EXEC, sizeof *x);
  x->num_lanes = g->num_lanes;
  for (int i = 0; i < g->num_lanes; i++)
    standin_copy_list(&x->ops[i], &g->ops[i]);
  for (int i = 1; i < g->num_lanes; i++) {
    x->lanes[i] = standin_new(STANDIN_STREAM, sizeof *x->lanes[i]);
    standin_add_stream(x->lanes[i]);
  }
  *exec = (CUgraphExec)(void *)x;
  return flags ? STANDIN_INVALID_VALUE : GPU_OK;
}

CUresult cuGraphDestroy(CUgraph graph) {
  STANDIN_ENTER(cuGraphDestroy);
  standin_graph *g = standin_live(STANDIN_GRAPH, graph, "cuGraphDestroy");
  for (int i = 0; i < g->num_lanes; i++)
    standin_free_list(&g->ops[i]);
  standin_end(g);
  return GPU_OK;
}

// Events whose times are asked for are the same in each launch; forks and joins are each launch's own,
// as one may be queued while another is not done yet.
static void renew_mark(standin_op *op) {
  if (op->kind != STANDIN_RECORD)
    return;
  op->mark->reached = false;
  if (op->timed)
    return;
  op->mark->fresh = calloc(1, sizeof *op->mark); // never freed: operations refer to it
  if (!op->mark->fresh)
    standin_report("out of memory");
}

static void queue_lane(standin_list *to, const standin_list *from) {
  standin_list list = {0};
  standin_copy_list(&list, from);
  for (standin_op *op = list.first; op; op = op->next)
    if (op->mark && op->mark->fresh && !op->timed)
      op->mark = op->mark->fresh;
  if (to->last)
    to->last->next = list.first;
  else
    to->first = list.first;
  to->last = list.last ? list.last : to->last;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  STANDIN_ENTER(cuGraphLaunch);
  standin_exec *x = standin_live(STANDIN_EXEC, exec, "cuGraphLaunch");
  standin_stream *s = queued_stream(stream, "cuGraphLaunch");
  for (int i = 0; i < x->num_lanes; i++)
    for (standin_op *op = x->ops[i].first; op; op = op->next)
      renew_mark(op);
  for (int i = 0; i < x->num_lanes; i++)
    queue_lane(i ? &x->lanes[i]->queue : &s->queue, &x->ops[i]);
  return GPU_OK;
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  STANDIN_ENTER(cuGraphExecDestroy);
  standin_exec *x = standin_live(STANDIN_EXEC, exec, "cuGraphExecDestroy");
  for (int i = 0; i < x->num_lanes; i++)
    standin_free_list(&x->ops[i]);
  for (int i = 1; i < x->num_lanes; i++) {
    if (x->lanes[i]->queue.first)
      standin_report("cuGraphExecDestroy: there is still work in a branch of the graph");
    standin_remove_stream(x->lanes[i]);
    standin_end(x->lanes[i]);
  }
  standin_end(x);
  return GPU_OK;
}

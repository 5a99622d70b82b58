#ifndef RUNTIME_QUEUE_H
#define RUNTIME_QUEUE_H

#include "runtime/context.h"

#include <nki/kernel.h>
#include <nki/stream.h>

// What is submitted and when it runs. A stream is a list of commands; a device runs one command at
// a time, of those at the heads of its streams whose dependences are done: the highest priority,
// then the oldest. It runs on the device's own thread or on a thread that waits for it.
//
// One lock guards everything here, in all devices of a context; it is not held while a command
// runs. Every dependence is on an earlier submission, so something can always run.

enum { QUEUE_DEVICES_MAX = 64 };

// A failure that several may return: those who synchronise with any stream that it reached.
typedef struct failure {
    atomic_uint refs;
    nki_status st;
    uint64_t serial;  // of the submission that failed first
    nki_diags *ds;    // or NULL
    char text[];      // the sentence
} failure;

// NULL: no memory (failure_none() is then a failure that needs none).
failure *failure_create(nki_status st, nki_diags *ds, const char *text);
failure *failure_retain(failure *f);  // NULL too
void failure_release(failure *f);
failure *failure_nomem(void);
// Records the sentence for the thread, appends the diagnostics; f NULL: NKI_OK.
nki_status failure_report(nki_context *ctx, const failure *f, nki_diags *ds);

// Done when slot's last finished submission is `serial` or later. Slots outlive their streams.
typedef struct dependence {
    uint32_t slot;
    uint64_t serial;
} dependence;

// Who used a tensor's memory last. Guarded by the queue's lock.
typedef struct usage {
    dependence at;
    bool write;
} usage;

typedef struct usage_list {
    usage *at;  // malloc'ed
    uint32_t n, cap;
    failure *failed;  // of what was to write the memory
} usage_list;

// A place that an event was recorded at.
typedef struct event_point {
    atomic_uint refs;
    nki_device *dev;
    bool reached;
    failure *failed;
    int64_t at_ns;
} event_point;
event_point *point_retain(event_point *p);
void point_release(event_point *p);

typedef struct command command;

// Runs on whatever thread runs the device; the lock is not held. Returns NULL or a failure.
typedef failure *(*command_fn)(command *c);

enum { COMMAND_TENSORS = 16 };

struct command {
    command *next;
    command_fn run;            // NULL: records or waits for `point`
    void (*fini)(command *c);  // drops what the command holds; lock not held
    nki_stream *stream;        // retained
    uint64_t serial;
    dependence *deps;  // malloc'ed
    uint32_t dep_count, dep_cap;
    event_point *point;  // to record, or to wait for
    bool waits, cancelled;
    _Atomic int stop;  // not 0 while it runs: it is to end with that status
    // Memory used: inputs must not have failed; failed outputs are marked.
    struct nki_tensor **tensors;  // retained; own_tensors where they fit
    uint8_t *writes;              // WRITE_*
    uint32_t tensor_count;
    struct nki_tensor *own_tensors[COMMAND_TENSORS];
    uint8_t own_writes[COMMAND_TENSORS];
    void *arg[4];       // of run
    const char *label;  // for traces; as long-lived as what the command holds
    // A caller waits for this one and takes its failure itself.
    bool direct, done, inlined;
    failure *failed;
    // For traces.
    nki_kernel *kernel;
    int64_t submit_ns;
    uint32_t submit_tid;
};

enum { ACCESS_READ = 0, ACCESS_CHANGE = 1, ACCESS_REPLACE = 2 };

struct nki_device {
    nki_context *ctx;  // not retained
    size_t index;
    device_core *core[COMPILE_CORES_MAX];  // made by the command that needs them first
    // Guarded by the queue's lock.
    nki_stream *active;   // streams that hold commands
    nki_stream *streams;  // all
    failure *lost;        // the earliest that a released stream kept
    nki_stream *stream;   // the device's own
    bool busy;            // a command runs
    bool threaded, asleep, quit;
    pthread_t thread;
    pthread_cond_t work;
};

struct nki_stream {
    atomic_uint refs;
    nki_context *ctx;  // retained, but by a device's own stream
    nki_device *dev;
    int priority;
    bool blocking, own;
    uint64_t run_timeout_ns;  // 0: none
    uint32_t slot;
    char name[32];
    // Guarded by the queue's lock.
    nki_stream *next, **prev;                // of the device's
    nki_stream *next_active, **prev_active;  // prev_active NULL: not active
    command *head, **tail;                   // head stays while it runs
    bool running;
    uint64_t last;    // serial of the newest submission
    failure *failed;  // kept until a synchronisation
};

typedef struct queue {
    pthread_mutex_t lock;
    pthread_cond_t done;        // something finished
    uint32_t waiting;           // threads that wait for done
    _Atomic uint64_t serial;    // of the newest submission; changed under the lock
    _Atomic uint64_t finished;  // submissions; changed under the lock
    int64_t linger_ns;          // before a thread that has nothing to do sleeps
    uint64_t pending;           // submissions not finished
    uint64_t *slots;            // newest finished serial of each stream slot
    uint8_t *slot_used;
    uint32_t slot_count;
    nki_device *devices;
    size_t device_count;
    // For reuse. Whoever finds spare_busy set does without.
    atomic_flag spare_busy;
    command *spare;
    uint32_t spare_count;
} queue;

// The lock is held for well under a microsecond; to be woken takes a thread tens of them. So it is
// tried for a while before this thread sleeps.
void queue_lock(queue *q);
void queue_unlock(queue *q);
// The device's thread has something to look at. The lock is held.
void device_wake(nki_device *dev);

nki_status queue_create(nki_context *ctx, queue **out);
// Nothing is pending: a command holds the context.
void queue_release(queue *q);

// A command with nothing in it; NULL: no memory. tensors: how many it will name.
command *command_create(nki_context *ctx, nki_stream *s, uint32_t tensors);
void command_release(command *c);  // one that was not submitted
// Names memory that the command uses; the tensor is retained.
void command_use(command *c, struct nki_tensor *t, int access);

// Takes c over. A blocking stream: runs it, and returns its failure.
nki_status queue_submit(command *c);
// Takes c over, runs it and waits: its failure comes back alone, the stream keeps none.
nki_status queue_call(command *c, nki_diags *ds);
// Waits until nothing pending uses the tensor's memory (all: reads too). The failure of what was to
// write it, retained, or NULL.
nki_status queue_wait_tensor(struct nki_tensor *t, bool reads_too, failure **failed);
// The caller has written all of t.
void queue_mark_written(struct nki_tensor *t);
void usage_fini(nki_context *ctx, usage_list *u);

// Waits, with what is pending running on this thread where nobody runs it, until reached(arg) (lock
// held). Without timeout: NKI_FOREVER. Errors: NKI_ERR_TIMEOUT; NKI_ERR_ARG inside a host function.
nki_status queue_wait(nki_context *ctx, nki_device *dev, uint64_t timeout_ns,
                      bool (*reached)(void *arg), void *arg);
nki_status stream_open(nki_context *ctx, nki_device *dev, const nki_stream_opts *o, bool own,
                       nki_stream **out);

// The cores of a launch of n, on the thread that runs the device. Errors: NKI_ERR_NOMEM.
nki_status device_cores(nki_device *dev, uint32_t n);

int64_t queue_now_ns(void);

#endif

#include "sched/profile.h"

#include <inttypes.h>
#include <math.h>

// RFC 4180, lines end in \n. Times are nanoseconds from the first instruction.

const char *profile_table_name(profile_table t)
{
    static const char *const names[TABLE_COUNT] = {
#define TABLE(id, name) [TABLE_##id] = name,
#include "sched/profile_tables.def"
    };
    return t < TABLE_COUNT ? names[t] : NULL;
}

static void field(textbuf *out, const char *s)
{
    if (!strpbrk(s, ",\"\n\r")) {
        text_cstr(out, s);
        return;
    }
    text_char(out, '"');
    for (; *s; s++) {
        if (*s == '"') {
            text_char(out, '"');
        }
        text_char(out, *s);
    }
    text_char(out, '"');
}

static void location(const ir *p, uint32_t instr, textbuf *out)
{
    uint32_t line, col;
    const char *path = place_path(p, p->instrs.at[instr].place, &line, &col);
    field(out, arena_printf(out->mem, "%s:%" PRIu32, path, line));
}

static const char *opcode(const ir *p, uint32_t instr)
{
    return isa_table[p->instrs.at[instr].op].name;
}

static void summary(const profile *pr, uint32_t core, textbuf *out)
{
#define METRIC(name, unit)                                                                         \
    if (!isnan(pr->sum.name##_##unit)) {                                                           \
        text_printf(out, "%" PRIu32 "," #name "," #unit ",%.17g\n", core, pr->sum.name##_##unit);  \
    }
#include "sched/profile.def"
}

// `head` of a row of an execution, from start_ts to nki_source_location.
static void execution(const profile *pr, uint32_t core, const clock_event *e, textbuf *out)
{
    text_printf(out, "%" PRIu32 ",%.3f,%.3f,%.3f,%s,%s,", core, ns_of_ps(e->start_ps),
                ns_of_ps(e->end_ps), ns_of_ps(e->end_ps - e->start_ps), track_name(e->track),
                opcode(pr->p, e->instr));
    textbuf t;
    text_init(&t, out->mem);
    operands_text(pr, e->instr, &t);
    field(out, t.len ? t.at : "");
    text_char(out, ',');
    location(pr->p, e->instr, out);
}

static void instructions(const profile *pr, uint32_t core, textbuf *out)
{
    coster cs;
    coster_init(&cs, pr->p, &pr->m);
    coster_take_dmas(&cs, pr->program);
    for (uint32_t i = 0; i < pr->clock.events.n; i++) {
        const clock_event *e = &pr->clock.events.at[i];
        if (e->track >= TRACK_DMA0) {
            continue;
        }
        const clock_event *by = e->from ? &pr->clock.events.at[e->from - 1] : NULL;
        double wait = ns_of_ps(e->wait_ps);
        bool dma = by && by->track >= TRACK_DMA0;
        work w;
        work_of(&cs, e->instr, &w);
        execution(pr, core, e, out);
        text_printf(out,
                    ",%.3f,%.3f,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
                    ",%d,%" PRIu32 ",%" PRIu32 "\n",
                    dma ? 0 : wait, dma ? wait : 0, w.read[0], w.write[0], w.read[1], w.write[1],
                    w.flops + w.transpose_flops, e->cold, e->instr, i);
    }
}

static void dmas(const profile *pr, uint32_t core, textbuf *out)
{
    coster cs;
    coster_init(&cs, pr->p, &pr->m);
    coster_take_dmas(&cs, pr->program);
    for (uint32_t i = 0; i < pr->clock.events.n; i++) {
        const clock_event *e = &pr->clock.events.at[i];
        if (e->track < TRACK_DMA0) {
            continue;
        }
        cost c;
        cost_of(&cs, e->instr, &c);
        unsigned engines = 0;
        for (unsigned k = 0; k < 16; k++) {
            engines += c.engines >> k & 1;
        }
        static const char *const types[DU_COUNT] = {"hardware_dynamic", "hardware_dynamic",
                                                    "software_dynamic", "static"};
        double moving = ns_of_ps(e->end_ps - e->issued_ps);
        execution(pr, core, e, out);
        text_printf(out, ",%s,%.3f,%" PRIu64 ",%" PRIu32 ",%u,%.4g,%" PRIu32 ",%" PRIu32 "\n",
                    types[c.unit % DU_COUNT], ns_of_ps(e->issued_ps), c.bytes, c.pieces, engines,
                    moving > 0 ? (double)c.bytes / moving : 0, e->instr, i);
    }
}

static void active(const profile *pr, uint32_t core, textbuf *out)
{
    for (unsigned t = 0; t < TRACK_COUNT; t++) {
        const track_time *k = &pr->clock.track[t];
        text_printf(out, "%" PRIu32 ",%s,%.3f,%.3f,%.3f,%.3f,%" PRIu64 "\n", core, track_name(t),
                    ns_of_ps(k->active_ps), ns_of_ps(k->busy_ps), ns_of_ps(k->wait_ps),
                    pr->critical_ns[t], k->count);
    }
}

static void opcodes(const profile *pr, uint32_t core, textbuf *out)
{
    for (uint32_t i = 0; i < pr->opcodes.n; i++) {
        const profile_opcode *o = &pr->opcodes.at[i];
        text_printf(out, "%" PRIu32 ",%s,%s,%" PRIu64 ",%.3f,%.3f,%" PRIu64 ",%" PRIu64 "\n", core,
                    engine_name((engine_id)o->engine), isa_table[o->op].name, o->count, o->busy_ns,
                    o->wait_ns, o->flops, o->bytes);
    }
}

static void flows(const profile *pr, uint32_t core, textbuf *out)
{
    const clock_event *ev = pr->clock.events.at;
    for (uint32_t i = 0; i < pr->clock.events.n; i++) {
        if (!ev[i].from) {
            continue;
        }
        const clock_event *by = &ev[ev[i].from - 1];
        text_printf(out, "%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%s,%s,", core, ev[i].from - 1, i,
                    by->track < TRACK_DMA0 ? "Instruction" : "DmaPacketAggregated",
                    ev[i].track < TRACK_DMA0 ? "Instruction" : "DmaPacketAggregated");
        if (ev[i].semaphore != CLOCK_NO_SEMAPHORE) {
            text_printf(out, "%u", ev[i].semaphore);
        }
        text_printf(out, ",%.3f\n", ns_of_ps(ev[i].start_ps - by->end_ps));
    }
}

static void areas(const profile *pr, uint32_t core, textbuf *out)
{
    for (uint32_t i = 0; i < pr->areas.n; i++) {
        const profile_area *a = &pr->areas.at[i];
        const ir_tensor *t = &pr->p->tensors.at[a->tensor];
        text_printf(out, "%" PRIu32 ",%" PRIu32 ",", core, a->tensor);
        field(out, pr->tensor_names[a->tensor]);
        text_printf(out, ",%s,%" PRIu32 ",%u,%" PRIu64 ",%" PRIu64 ",%.3f,%.3f\n",
                    buffer_name((buffer_kind)t->buffer), t->addr_part, t->partitions, t->addr_bytes,
                    t->size_bytes, ns_of_ps(a->from_ps), ns_of_ps(a->to_ps));
    }
}

static void tensors(const profile *pr, uint32_t core, textbuf *out)
{
    for (uint32_t i = 0; i < pr->p->tensors.n; i++) {
        const ir_tensor *t = &pr->p->tensors.at[i];
        uint32_t line, col;
        const char *path = place_path(pr->p, t->place, &line, &col);
        text_printf(out, "%" PRIu32 ",%" PRIu32 ",", core, i);
        field(out, pr->tensor_names[i]);
        text_printf(out, ",%s,%s,\"[", buffer_name((buffer_kind)t->buffer),
                    dtype_name((dtype)t->dtype));
        for (unsigned k = 0; k < t->ndim; k++) {
            text_printf(out, "%s%" PRIu32, k ? "," : "", t->shape[k]);
        }
        text_printf(out, "]\",%" PRIu64 ",", t->size_bytes);
        field(out, *path ? arena_printf(out->mem, "%s:%" PRIu32, path, line) : "");
        text_char(out, '\n');
    }
}

static void lines(const profile *pr, uint32_t core, textbuf *out)
{
    for (uint32_t i = 0; i < pr->lines.n; i++) {
        const profile_line *l = &pr->lines.at[i];
        text_printf(out, "%" PRIu32 ",", core);
        field(out, l->path);
        text_printf(out, ",%" PRIu32 ",%" PRIu64 ",%.3f,%.3f,%.3f\n", l->line, l->count, l->busy_ns,
                    l->wait_ns, l->critical_ns);
    }
}

static void stalls(const profile *pr, uint32_t core, textbuf *out)
{
    for (uint32_t i = 0; i < pr->stalls.n; i++) {
        const profile_stall *s = &pr->stalls.at[i];
        text_printf(out, "%" PRIu32 ",%s,%s,", core,
                    engine_name((engine_id)pr->p->instrs.at[s->instr].engine),
                    opcode(pr->p, s->instr));
        location(pr->p, s->instr, out);
        text_printf(out, ",%" PRIu64 ",%.3f,%.3f,", s->count, s->lost_ns, s->worst_ns);
        if (s->by) {
            text_printf(out, "%s,%s,", engine_name((engine_id)pr->p->instrs.at[s->by - 1].engine),
                        opcode(pr->p, s->by - 1));
            location(pr->p, s->by - 1, out);
        } else {
            text_cstr(out, ",,");
        }
        text_char(out, '\n');
    }
}

static void findings(const profile *pr, uint32_t core, textbuf *out)
{
    for (uint32_t i = 0; i < pr->findings.n; i++) {
        const finding *f = &pr->findings.at[i];
        text_printf(out, "%" PRIu32 ",%s,%.3f,%.3f,", core, finding_name(f->kind), f->cost_ns,
                    f->gain_ns);
        if (f->places) {
            location(pr->p, f->at[0], out);
        }
        text_char(out, ',');
        field(out, f->text);
        text_char(out, '\n');
    }
}

static void semaphores(const profile *pr, uint32_t core, textbuf *out)
{
    profile_update *u;
    uint32_t n = profile_updates(pr, out->mem, &u);
    for (uint32_t i = 0; i < n; i++) {
        const semaphore_info *s = &pr->program->semaphores.at[u[i].semaphore];
        text_printf(out, "%" PRIu32 ",%.3f,%" PRIu32 ",%s,%s,%" PRId32 ",%" PRId64 "\n", core,
                    ns_of_ps(u[i].at_ps), u[i].semaphore, stream_name(s->producer),
                    stream_name(s->consumer), u[i].by, u[i].value);
    }
}

void profile_csv(const profile *cores, uint32_t n, profile_table table, textbuf *out)
{
#define EXECUTION                                                                                  \
    "pcore_idx,start_ts,end_ts,duration_ns,engine,opcode,operands,nki_source_location,"
    static const struct {
        const char *header;
        void (*rows)(const profile *pr, uint32_t core, textbuf *out);
    } tables[TABLE_COUNT] = {
        [TABLE_SUMMARY] = {"pcore_idx,metric,unit,value", summary},
        [TABLE_INSTRUCTION] = {EXECUTION "evt_wait_time_ns,dma_wait_time_ns,sbuf_read_bytes,"
                                         "sbuf_write_bytes,psum_read_bytes,psum_write_bytes,"
                                         "raw_flops,tensor_cold,instr,id",
                               instructions},
        [TABLE_DMA] = {EXECUTION "queue_type,first_byte_ts,transfer_bytes,packet_count,"
                                 "dma_engine_count,throughput_bytes_per_ns,instr,id",
                       dmas},
        [TABLE_ACTIVE] = {"pcore_idx,engine,active_time_ns,instruction_time_ns,wait_time_ns,"
                          "critical_time_ns,instruction_count",
                          active},
        [TABLE_OPCODE] = {"pcore_idx,engine,opcode,count,instruction_time_ns,wait_time_ns,"
                          "raw_flops,bytes",
                          opcodes},
        [TABLE_FLOW] = {"pcore_idx,in_id,out_id,in_table,out_table,semaphore_id,gap_time_ns",
                        flows},
        [TABLE_SEMAPHORE] = {"pcore_idx,ts,semaphore_id,producer,consumer,change,value",
                             semaphores},
        [TABLE_SBUF] = {"pcore_idx,tensor_id,name,memory,start_partition,partitions,address,"
                        "bytes_per_partition,start_ts,end_ts",
                        areas},
        [TABLE_TENSOR] = {"pcore_idx,tensor_id,name,memory,dtype,shape,bytes,nki_source_location",
                          tensors},
        [TABLE_LINE] = {"pcore_idx,path,line,count,busy_ns,wait_ns,critical_ns", lines},
        [TABLE_STALL] = {"pcore_idx,engine,opcode,nki_source_location,count,lost_ns,worst_ns,"
                         "waited_engine,waited_opcode,waited_source_location",
                         stalls},
        [TABLE_FINDING] = {"pcore_idx,kind,cost_ns,gain_ns,nki_source_location,text", findings},
    };
#undef EXECUTION
    text_cstr(out, tables[table].header);
    text_char(out, '\n');
    for (uint32_t i = 0; i < n; i++) {
        tables[table].rows(&cores[i], i, out);
    }
}

// Names, after pass 2: variables that turned out to be cells, and the cells' final numbers.
#include "lower/scope.h"

static void fix_slot(const builder *b, uint8_t *scope, uint32_t *slot)
{
    uint32_t own = b->own.n;
    if (*scope == SCOPE_LOCAL && b->u->kind == UNIT_FUNC) {
        for (uint32_t i = 0; i < own; i++) {
            const var *v = &b->vars.at[b->own.at[i]];
            if (v->slot == *slot) {
                *scope = SCOPE_CELL;
                *slot = i;
                return;
            }
        }
    } else if (*scope == SCOPE_CELL && (*slot & 0x80000000u)) {
        *slot = own + (*slot & 0x7fffffffu);
    } else if (*scope == SCOPE_CLASS && *slot && ((*slot - 1) & 0x80000000u)) {
        *slot = own + ((*slot - 1) & 0x7fffffffu) + 1;
    }
}

void scope_fix(void *ctx, ast *list, ast_role role)
{
    if (role == ROLE_INNER || role == ROLE_ANNOTATION) {
        return;
    }
    for (ast *n = list; n; n = n->next) {
        if (n->kind == AST_NAME || ast_bound_name(n)) {
            fix_slot(ctx, &n->scope, &n->slot);
        }
        scope_outside(n, role, scope_fix, ctx);
    }
}

void scope_fix_units(void *ctx, ast *list, ast_role role)
{
    unit *u = ctx;
    if (role == ROLE_INNER || role == ROLE_ANNOTATION) {
        return;
    }
    for (ast *n = list; n; n = n->next) {
        scope_outside(n, role, scope_fix_units, u);
        if (!scope_is_unit(n)) {
            continue;
        }
        // The parent's own cells may have grown after this unit captured a free one of it.
        unit *c = n->cache;
        for (uint32_t i = 0; i < c->nfree; i++) {
            if (c->free_from[i] & 0x80000000u) {
                c->free_from[i] = u->nown + (c->free_from[i] & 0x7fffffffu);
            }
        }
        scope_inside(n, scope_fix_units, c);
    }
}

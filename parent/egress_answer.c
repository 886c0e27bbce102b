#include "parent/egress_ask.h"
#include "shared/descriptors.h"
#include "shared/text.h"

static void send_grant(struct ask *ask)
{
  struct msg_grant grant = {.type = MSG_GRANT, .ask = ask->id, .session = ask->session};
  child_send(ask->worker, &grant, steal_fd(&ask->descriptor));
}

/* What the worker needs to say why: names and rules of the policy, nothing about addresses. */
static void send_refusal(struct ask *ask)
{
  struct msg_refusal refusal = {
    .type = MSG_REFUSAL, .reason = (uint16_t)ask->reason, .ask = ask->id, .session = ask->session};
  const struct policy *policy = ask->client.listener->policy;
  bool by_policy = reason_row(ask->reason)->status == 403;
  if (by_policy) {
    text_fill(refusal.policy, sizeof refusal.policy, policy->name);
    text_fill(refusal.message, sizeof refusal.message, policy->message);
  }
  if (ask->reason == REASON_DENIED && ask->rule)
    text_fill(refusal.rule, sizeof refusal.rule, ask->rule->text);
  if (ask->reason == REASON_NOT_ALLOWED)
    decide_suggest(&ask->host, ask->port, refusal.rule, sizeof refusal.rule);
  if (ask->reason == REASON_BLOCKED_ADDRESS)
    text_fill(refusal.address_class, sizeof refusal.address_class, address_class_name(ask->address_class));
  child_send(ask->worker, &refusal, -1);
}

void egress_answer(struct ask *ask, bool recorded)
{
  struct egress *egress = ask->egress;
  if (!recorded)
    ask->reason = REASON_AUDIT_UNAVAILABLE;
  /* The books come before the descriptor: what is not in them could be neither cut nor closed. */
  else if (ask->reason == REASON_NONE && !books_enter(egress->books, ask->session, ask->worker, &ask->client,
                                                      ask->host.text, ask->port, &ask->upstream))
    ask->reason = REASON_LIMIT_REACHED;
  ask_release_credit(ask);
  if (ask->reason == REASON_NONE)
    send_grant(ask);
  else
    send_refusal(ask);
}

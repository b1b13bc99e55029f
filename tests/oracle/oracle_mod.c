// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The oracle in a kernel: /proc/skb_oracle. One write is a request, one read its answer.
 *
 * No locking, one user: a guest that does nothing else, or the running kernel of a machine whose
 * owner asked for it. Its sockets live in the network namespace of whoever loads it, and what they
 * change there is all that it changes; unloaded, it leaves nothing behind.
 */
#include "env_kernel.h"
#include "budget.h"
#include "interp.h"
#include "yardstick.h"

#include <linux/kprobes.h>
#include <linux/nsproxy.h>
#include <linux/proc_fs.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#define TEXT_ROOM (4u << 20)

int (*o_skb_shift)(struct sk_buff *tgt, struct sk_buff *skb, int shiftlen);
int (*o_tcp_trim_head)(struct sock *sk, struct sk_buff *skb, u32 len);
int (*o_tcp_fragment)(struct sock *sk, enum tcp_queue queue, struct sk_buff *skb, u32 len,
		      unsigned int mss, gfp_t gfp);
int (*o_skb_unclone_keeptruesize)(struct sk_buff *skb, gfp_t gfp);
void (*o_skb_condense)(struct sk_buff *skb);
struct sock *o_sk;
struct net *o_net;
int o_queued;

static struct {
	struct oracle_request head;
	struct oracle_op ops[ORACLE_MAX_OPS];
} request;
static struct proc_dir_entry *entry;
static struct socket *plain; /* o_sk's */
static char *text;
static unsigned long text_len;

static ssize_t oracle_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	struct oracle_out out = { .text = text, .room = TEXT_ROOM };

	if (len < sizeof(request.head) || len > sizeof(request))
		return -EINVAL;
	if (copy_from_user(&request, from, len))
		return -EFAULT;
	if (len != sizeof(request.head) + request.head.nr_ops * sizeof(request.ops[0]))
		return -EINVAL;
	if (request.head.flags & ORACLE_PANIC)
		panic("oracle guest: asked to panic");
	while (request.head.flags & ORACLE_HANG)
		cpu_relax();
	if (request.head.flags & ORACLE_BUDGET && request.head.nr_ops == 1) {
		text_len = oracle_budget(request.ops, text, TEXT_ROOM);
		return len;
	}
	if (request.head.flags & ORACLE_YARDSTICK) {
		text_len = oracle_yardstick(text, TEXT_ROOM);
		return len;
	}
	if (!(request.head.flags & ORACLE_DUMP))
		out.text = NULL;
	if (oracle_run(&request.head, &out))
		return -EINVAL;
	text_len = out.text ? out.len : scnprintf(text, TEXT_ROOM, "%016llx", out.hash);
	return len;
}

static ssize_t oracle_read(struct file *file, char __user *to, size_t len, loff_t *pos)
{
	return simple_read_from_buffer(to, len, pos, text, text_len);
}

static const struct proc_ops oracle_ops = {
	.proc_write = oracle_write,
	.proc_read = oracle_read,
	.proc_lseek = default_llseek,
};

static unsigned long (*lookup)(const char *name);

static void *find(const char *name)
{
	void *at = (void *)lookup(name);

	if (!at)
		pr_err("oracle guest: this kernel has no %s\n", name);
	return at;
}

static const struct {
	void **at;
	const char *name;
} wanted[] = {
	{ (void **)&o_skb_shift, "skb_shift" },
	{ (void **)&o_tcp_trim_head, "tcp_trim_head" },
	{ (void **)&o_tcp_fragment, "tcp_fragment" },
	{ (void **)&o_skb_unclone_keeptruesize, "__skb_unclone_keeptruesize" },
	{ (void **)&o_skb_condense, "skb_condense" },
	{ (void **)&o_tcp_v4_rcv, "tcp_v4_rcv" },
	{ (void **)&o_tcp_push_pending_frames, "__tcp_push_pending_frames" },
	{ (void **)&o_tcp_mark_skb_lost, "tcp_mark_skb_lost" },
	{ (void **)&o_tcp_retransmit_skb, "tcp_retransmit_skb" },
	{ (void **)&o_tcp_sync_mss, "tcp_sync_mss" },
};

static int __init oracle_init(void)
{
	struct kprobe probe = { .symbol_name = "kallsyms_lookup_name" };
	int i, err = register_kprobe(&probe);

	if (err) {
		pr_err("oracle guest: no kprobe on kallsyms_lookup_name: %d\n", err);
		return err;
	}
	lookup = (void *)probe.addr;
	unregister_kprobe(&probe);
	for (i = 0; i < ARRAY_SIZE(wanted); i++) {
		*wanted[i].at = find(wanted[i].name);
		if (!*wanted[i].at)
			return -ENOENT;
	}
	text = vmalloc(TEXT_ROOM);
	if (!text)
		return -ENOMEM;
	o_net = get_net(current->nsproxy->net_ns);
	err = sock_create_kern(o_net, AF_INET, SOCK_STREAM, IPPROTO_TCP, &plain);
	if (err) {
		pr_err("oracle guest: no socket: %d\n", err);
		goto no_socket;
	}
	o_sk = plain->sk;
	entry = proc_create("skb_oracle", 0600, NULL, &oracle_ops);
	if (entry)
		return 0;
	err = -ENOMEM;
	sock_release(plain);
no_socket:
	put_net(o_net);
	vfree(text);
	return err;
}

static void __exit oracle_exit(void)
{
	proc_remove(entry);
	oracle_sock_end();
	o_sock_settle(0);
	sock_release(plain);
	put_net(o_net);
	vfree(text);
}

module_init(oracle_init);
module_exit(oracle_exit);
MODULE_DESCRIPTION("sk_buff programs, run on the kernel's own sk_buffs");
MODULE_LICENSE("Dual MIT/GPL");

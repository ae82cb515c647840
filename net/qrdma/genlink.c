// SPDX-License-Identifier: GPL-2.0
/*
 * The generic netlink family. See genlink.h.
 */
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/qrdma_genl.h>
#include <net/genetlink.h>

#include "agent_end.h"
#include "genlink.h"
#include "reset.h"

enum {
	GENLINK_GROUP_AGENT,
};

static struct genl_family genlink_family;

/*
 * The agents of a namespace
 */

static bool genlink_present(struct net *net)
{
	/* The kernel keeps one note for all namespaces. */
	return genl_has_listeners(&genlink_family, net, GENLINK_GROUP_AGENT);
}

static int genlink_ready(struct net *net)
{
	struct sk_buff *skb = genlmsg_new(0, GFP_ATOMIC);

	if (!skb)
		return -ENOMEM;
	if (!genlmsg_put(skb, 0, 0, &genlink_family, 0, QRDMA_CMD_READY)) {
		nlmsg_free(skb);
		return -EMSGSIZE;
	}
	return genlmsg_multicast_netns(&genlink_family, net, skb, 0, GENLINK_GROUP_AGENT,
				       GFP_ATOMIC);
}

const struct qrdma_agent_ops qrdma_genlink_agents = {
	.present	= genlink_present,
	.ready		= genlink_ready,
};

/*
 * Commands
 */

static int genlink_describe(struct sk_buff *skb, struct genl_info *info, int fd,
			    const struct qrdma_agent_offer *offer)
{
	u32 uid = from_kuid_munged(current_user_ns(), offer->uid);
	void *hdr = genlmsg_put_reply(skb, info, &genlink_family, 0, QRDMA_CMD_ACCEPT);

	if (!hdr || nla_put_s32(skb, QRDMA_A_ACCEPT_FD, fd) ||
	    nla_put_u32(skb, QRDMA_A_ACCEPT_ROLE, offer->role) ||
	    nla_put_u32(skb, QRDMA_A_ACCEPT_TIMEOUT, offer->timeout) ||
	    nla_put_u32(skb, QRDMA_A_ACCEPT_UID, uid))
		return -EMSGSIZE;
	genlmsg_end(skb, hdr);
	return 0;
}

/* Either the agent has both, descriptor and answer, or the handshake goes on waiting. */
static int genlink_accept(struct sk_buff *skb, struct genl_info *info)
{
	struct qrdma_agent_offer offer;
	struct sk_buff *reply;
	struct file *file;
	int fd, err;

	/* Several agents hear of each that waits. */
	if (!qrdma_agent_waits(genl_info_net(info)))
		return -EAGAIN;
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	reply = genlmsg_new(4 * nla_total_size(sizeof(u32)), GFP_KERNEL);
	if (!reply) {
		err = -ENOMEM;
		goto err_fd;
	}
	file = qrdma_agent_end_open(genl_info_net(info), &offer);
	if (IS_ERR(file)) {
		err = PTR_ERR(file);
		goto err_reply;
	}
	err = genlink_describe(reply, info, fd, &offer);
	if (err)
		goto err_file;
	err = genlmsg_reply(reply, info);
	if (err) {
		reply = NULL;	/* used up */
		goto err_file;
	}
	fd_install(fd, file);
	return 0;

err_file:
	qrdma_agent_end_undo(file);
err_reply:
	nlmsg_free(reply);
err_fd:
	put_unused_fd(fd);
	return err;
}

static int genlink_host_key(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *key = info->attrs[QRDMA_A_HOST_KEY];
	int err;

	if (!net_eq(genl_info_net(info), &init_net))
		err = -EPERM;
	else if (!key)
		err = -EINVAL;
	else
		err = qrdma_reset_set_key(nla_data(key));
	if (key)
		memzero_explicit(nla_data(key), nla_len(key));
	return err;
}

static const struct nla_policy genlink_host_policy[QRDMA_A_HOST_MAX + 1] = {
	[QRDMA_A_HOST_KEY]	= NLA_POLICY_EXACT_LEN(QRDMA_HOST_KEY_LEN),
};

static const struct genl_ops genlink_ops[] = {
	{
		.cmd		= QRDMA_CMD_ACCEPT,
		.doit		= genlink_accept,
		.flags		= GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd		= QRDMA_CMD_HOST_KEY,
		.doit		= genlink_host_key,
		.policy		= genlink_host_policy,
		.maxattr	= QRDMA_A_HOST_MAX,
		.flags		= GENL_UNS_ADMIN_PERM,
	},
};

static const struct genl_multicast_group genlink_groups[] = {
	[GENLINK_GROUP_AGENT] = {
		.name	= QRDMA_GENL_MCGRP_AGENT,
		.flags	= GENL_MCAST_CAP_NET_ADMIN,
	},
};

static struct genl_family genlink_family __ro_after_init = {
	.name		= QRDMA_GENL_NAME,
	.version	= QRDMA_GENL_VERSION,
	.netnsok	= true,
	.parallel_ops	= true,
	.module		= THIS_MODULE,
	.ops		= genlink_ops,
	.n_ops		= ARRAY_SIZE(genlink_ops),
	.mcgrps		= genlink_groups,
	.n_mcgrps	= ARRAY_SIZE(genlink_groups),
};

int __init qrdma_genlink_start(void)
{
	return genl_register_family(&genlink_family);
}

void qrdma_genlink_stop(void)
{
	genl_unregister_family(&genlink_family);
}

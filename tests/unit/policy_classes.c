#include <criterion/criterion.h>
#include <string.h>

#include "policy/egress/classes.h"

static struct address parse(const char *text)
{
  struct address address = {0};
  cr_assert_eq(address_parse(text, &address), 0, "%s", text);
  return address;
}

static const struct class_row {
  const char *address;
  enum address_class address_class;
} rows[] = {
  {"8.8.8.8", CLASS_PUBLIC},
  {"1.1.1.1", CLASS_PUBLIC},
  {"9.255.255.255", CLASS_PUBLIC},
  {"11.0.0.0", CLASS_PUBLIC},
  {"100.63.255.255", CLASS_PUBLIC},
  {"100.128.0.0", CLASS_PUBLIC},
  {"172.15.255.255", CLASS_PUBLIC},
  {"172.32.0.0", CLASS_PUBLIC},
  {"223.255.255.255", CLASS_PUBLIC},
  {"0.0.0.0", CLASS_UNSPECIFIED},
  {"0.1.2.3", CLASS_UNSPECIFIED},
  {"10.0.0.0", CLASS_PRIVATE},
  {"10.255.255.255", CLASS_PRIVATE},
  {"172.16.0.1", CLASS_PRIVATE},
  {"172.31.255.255", CLASS_PRIVATE},
  {"192.168.255.255", CLASS_PRIVATE},
  {"100.64.0.1", CLASS_SHARED},
  {"127.0.0.1", CLASS_LOOPBACK},
  {"127.255.255.255", CLASS_LOOPBACK},
  {"169.254.1.1", CLASS_LINK_LOCAL},
  {"192.0.0.1", CLASS_RESERVED},
  {"192.0.2.1", CLASS_DOCUMENTATION},
  {"198.51.100.1", CLASS_DOCUMENTATION},
  {"203.0.113.1", CLASS_DOCUMENTATION},
  {"198.18.0.1", CLASS_BENCHMARKING},
  {"198.19.255.255", CLASS_BENCHMARKING},
  {"192.88.99.1", CLASS_RESERVED},
  {"224.0.0.1", CLASS_MULTICAST},
  {"239.255.255.255", CLASS_MULTICAST},
  {"240.0.0.1", CLASS_RESERVED},
  {"255.255.255.255", CLASS_BROADCAST},
  {"169.254.169.254", CLASS_METADATA},
  {"169.254.170.2", CLASS_METADATA},
  {"168.63.129.16", CLASS_METADATA},
  {"100.100.100.200", CLASS_METADATA},
  {"192.0.0.192", CLASS_METADATA},
  {"2606:4700::1111", CLASS_PUBLIC},
  {"2a00::1", CLASS_PUBLIC},
  {"::", CLASS_UNSPECIFIED},
  {"::1", CLASS_LOOPBACK},
  {"::2", CLASS_RESERVED},
  {"fe80::1", CLASS_LINK_LOCAL},
  {"febf::1", CLASS_LINK_LOCAL},
  {"fec0::1", CLASS_RESERVED},
  {"fc00::1", CLASS_UNIQUE_LOCAL},
  {"fd12::1", CLASS_UNIQUE_LOCAL},
  {"ff02::1", CLASS_MULTICAST},
  {"2001:db8::1", CLASS_DOCUMENTATION},
  {"3fff::1", CLASS_DOCUMENTATION},
  {"2001:2::1", CLASS_BENCHMARKING},
  {"100::1", CLASS_RESERVED},
  {"2001:20::1", CLASS_RESERVED},
  {"5f00::1", CLASS_RESERVED},
  {"4000::1", CLASS_RESERVED},
  {"1fff::1", CLASS_RESERVED},
  {"fd00:ec2::254", CLASS_METADATA},
  {"fd20:ce::254", CLASS_METADATA},
  {"fd00:c1::a9fe:a9fe", CLASS_METADATA},
  {"fd00:42::42", CLASS_METADATA},
  {"fd00:a9fe:a9fe::1", CLASS_METADATA},
  {"fd00:100::100:200", CLASS_METADATA},
  /* IPv4 inside: mapped, compatible, translated, NAT64 (both prefixes, each place), 6to4, Teredo */
  {"::ffff:8.8.8.8", CLASS_PUBLIC},
  {"::ffff:127.0.0.1", CLASS_LOOPBACK},
  {"::ffff:10.0.0.1", CLASS_PRIVATE},
  {"::ffff:169.254.169.254", CLASS_METADATA},
  {"::ffff:0.0.0.0", CLASS_UNSPECIFIED},
  {"::127.0.0.1", CLASS_RESERVED},
  {"::169.254.169.254", CLASS_METADATA},
  {"::ffff:0:127.0.0.1", CLASS_RESERVED},
  {"::ffff:0:169.254.169.254", CLASS_METADATA},
  {"64:ff9b::8.8.8.8", CLASS_PUBLIC},
  {"64:ff9b::127.0.0.1", CLASS_LOOPBACK},
  {"64:ff9b::192.168.0.1", CLASS_PRIVATE},
  {"64:ff9b::169.254.169.254", CLASS_METADATA},
  {"64:ff9b:1::8.8.8.8", CLASS_RESERVED},
  {"64:ff9b:1::169.254.169.254", CLASS_METADATA},
  {"64:ff9b:1:a9fe:a9:fe00::", CLASS_METADATA},
  {"64:ff9b:1:a9:fe:a9fe::", CLASS_METADATA},
  {"64:ff9b:1:0:a9:fea9:fe00:0", CLASS_METADATA},
  {"2002:7f00:1::", CLASS_RESERVED},
  {"2002:a9fe:a9fe::1", CLASS_METADATA},
  {"2001:0:808:808:0:0:5601:5601", CLASS_METADATA},
  {"2001:0:a9fe:a9fe::", CLASS_METADATA},
};

Test(policy_classes, addresses_have_the_class_of_their_registry)
{
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct address address = parse(rows[i].address);
    cr_expect_eq(address_classify(&address), rows[i].address_class, "%s is %s", rows[i].address,
                 address_class_name(address_classify(&address)));
  }
}

static const struct embedded_row {
  const char *address;
  const char *inside; /* NULL: none */
} embedded[] = {
  {"::ffff:1.2.3.4", "1.2.3.4"},
  {"::1.2.3.4", "1.2.3.4"},
  {"64:ff9b::1.2.3.4", "1.2.3.4"},
  {"64:ff9b:1::1.2.3.4", "1.2.3.4"},
  {"2002:102:304::1", "1.2.3.4"},
  {"2001:0:808:808:0:0:fefd:fcfb", "1.2.3.4"},
  {"::", NULL},
  {"::1", NULL},
  {"2606:4700::1", NULL},
  {"1.2.3.4", NULL},
};

Test(policy_classes, embedded_ipv4)
{
  for (size_t i = 0; i < sizeof embedded / sizeof embedded[0]; i++) {
    struct address address = parse(embedded[i].address), inside = {0};
    cr_expect_eq(address_embedded_ipv4(&address, &inside), embedded[i].inside != NULL, "%s", embedded[i].address);
    char text[ADDRESS_TEXT_SIZE];
    if (embedded[i].inside)
      cr_expect_str_eq(address_format(&inside, text, sizeof text), embedded[i].inside);
  }
}

Test(policy_classes, every_class_has_a_name)
{
  for (unsigned i = 0; i < CLASS_COUNT; i++)
    cr_expect_not_null(address_class_name((enum address_class)i));
  cr_expect_str_eq(address_class_name(CLASS_METADATA), "cloud metadata");
  cr_expect_str_eq(address_class_name(CLASS_COUNT), "reserved");
}

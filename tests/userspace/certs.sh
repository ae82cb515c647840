#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Makes the test certificates in the folder $1: an authority, a server and a client of it, an expired server, a
# server of an authority that nobody trusts, a client that has the name of the server, and one for each of the test
# machines (tests/vm), which is both.
set -eu
cd "$1"

make_ca() { # name
	certtool --generate-privkey --ecc --outfile "$1.key" 2>/dev/null
	printf 'cn = "%s"\nca\ncert_signing_key\nexpiration_days = 30\n' "$1" > "$1.tmpl"
	certtool --generate-self-signed --load-privkey "$1.key" --template "$1.tmpl" --outfile "$1.pem" 2>/dev/null
}

make_cert() { # name, authority, lines of the template
	certtool --generate-privkey --ecc --outfile "$1.key" 2>/dev/null
	printf 'cn = "%s"\nsigning_key\n%b' "$1" "$3" > "$1.tmpl"
	certtool --generate-certificate --load-privkey "$1.key" --load-ca-certificate "$2.pem" \
		--load-ca-privkey "$2.key" --template "$1.tmpl" --outfile "$1.pem" 2>/dev/null
}

valid='expiration_days = 20\n'
server='dns_name = "server.test"\nip_address = "10.9.0.2"\ntls_www_server\n'
make_ca ca
make_ca stranger
make_cert server ca "$valid$server"
make_cert client ca "${valid}dns_name = \"client.test\"\ntls_www_client\n"
make_cert expired ca "activation_date = \"2020-01-01\"\nexpiration_date = \"2020-02-01\"\n$server"
make_cert untrusted stranger "$valid$server"
make_cert namesake ca "${valid}dns_name = \"server.test\"\ntls_www_client\n"
make_cert host-a ca "${valid}ip_address = \"10.9.0.1\"\nip_address = \"fd09::1\"\n"
make_cert host-b ca "${valid}ip_address = \"10.9.0.2\"\nip_address = \"fd09::2\"\n"

"""Scans a TLS server on loopback with sslyze: prints the versions and ciphers that it accepts, the groups, and the word
on everything that was ever broken. Not scanned: the certificate's chain, which is a test's own, and headers of HTTP.

Arguments: port.
"""

import pathlib
import sys

from sslyze import (
    ProtocolWithOpportunisticTlsEnum,
    ScanCommand,
    ScanCommandAttemptStatusEnum,
    Scanner,
    ServerNetworkConfiguration,
    ServerNetworkLocation,
    ServerScanRequest,
)

port = int(sys.argv[1])
ciphers = [command for command in ScanCommand if command.value.endswith("_cipher_suites")]
request = ServerScanRequest(
    server_location=ServerNetworkLocation("localhost", port, "127.0.0.1"),
    # Long: a busy machine is no finding.
    network_configuration=ServerNetworkConfiguration("localhost", network_timeout=300),
    scan_commands=set(ScanCommand) - {ScanCommand.CERTIFICATE_INFO, ScanCommand.HTTP_HEADERS},
)
scanner = Scanner(per_server_concurrent_connections_limit=5)
scanner.queue_scans([request])
(result,) = scanner.get_results()
found = result.scan_result
if found is None:
    sys.exit(f"no scan: {result.connectivity_error_trace}")


def of(command):
    attempt = getattr(found, command.value)
    if attempt.status != ScanCommandAttemptStatusEnum.COMPLETED:
        print(f"not scanned: {command.value}: {attempt.error_reason} {attempt.error_trace}")
        return None
    return attempt.result


for command in sorted(ciphers, key=lambda command: command.value):
    if (answer := of(command)) and answer.accepted_cipher_suites:
        print(answer.tls_version_used.name, *sorted(suite.cipher_suite.name for suite in answer.accepted_cipher_suites))
WORDS = {
    ScanCommand.ELLIPTIC_CURVES: lambda answer: " ".join(curve.name for curve in answer.supported_curves),
    ScanCommand.HEARTBLEED: lambda answer: answer.is_vulnerable_to_heartbleed,
    ScanCommand.OPENSSL_CCS_INJECTION: lambda answer: answer.is_vulnerable_to_ccs_injection,
    ScanCommand.ROBOT: lambda answer: answer.robot_result.name,
    ScanCommand.SESSION_RENEGOTIATION: lambda answer: answer.client_renegotiations_success_count,
    ScanCommand.SESSION_RESUMPTION: lambda answer: answer.session_id_resumption_result.name
    + " by a session's name, " + answer.tls_ticket_resumption_result.name + " by a ticket",
    ScanCommand.TLS_1_3_EARLY_DATA: lambda answer: answer.supports_early_data,
    ScanCommand.TLS_COMPRESSION: lambda answer: answer.supports_compression,
    ScanCommand.TLS_EXTENDED_MASTER_SECRET: lambda answer: answer.supports_ems_extension,
    ScanCommand.TLS_FALLBACK_SCSV: lambda answer: answer.supports_fallback_scsv,
}
for command in sorted(request.scan_commands - set(ciphers), key=lambda command: command.value):
    # A command that a later sslyze brings has no word here: that is an error, so that somebody looks at it.
    if answer := of(command):
        print(f"{command.value}: {WORDS[command](answer)}")

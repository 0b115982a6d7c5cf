import EventLoop
import Glibc
import TestSupport
import Testing

/// The built `siwa-accounts` behind a load balancer.
@Loop @Suite(.timeLimit(.minutes(30))) struct AccountsBalancerTests {
  @Test func believesTheBalancerWhomItForwards() async throws {
    try await AccountsStage.run { stage in
      try await stage.accounts(["SIWA_ACCOUNTS_PROXY_PROTOCOL": "127.0.0.1"]) { running in
        let words = [
          "--silent", "--show-error", "--cacert", stage.files.path + "/certificate.pem", "--output", "/dev/null",
          "--write-out", "%{http_code}", "https://\(running.address)/v1/accounts",
        ]
        let forwarded = try await RunningProgram.finish(path: "curl", ["--haproxy-protocol"] + words)
        #expect(forwarded.output == "401", "\(forwarded)")
        // Whoever comes from there has to say whom it forwards.
        let silent = try await RunningProgram.finish(path: "curl", words)
        #expect(silent.output == "000" && silent.end != .exit(0), "\(silent)")
        #expect(try await running.administration.metric("siwa_http_proxy_headers_refused_total") == 1)
      }
    }
  }

  @Test func saysThatItEndsBeforeItStopsListening() async throws {
    try await AccountsStage.run { stage in
      try await stage.accounts(["SIWA_ACCOUNTS_LAME_DUCK": "300s"]) { running in
        running.program.signal(SIGTERM)
        try await until { try await running.administration.get("/readyz").status == 503 }
        for _ in 0..<3 {
          #expect(try await stage.ask(running, "GET", "/v1/accounts", as: nil).status == 401, "it still answers")
        }
        #expect(!running.program.errors.contains("accounts drains"))
        // Whoever cannot wait says so.
        running.program.signal(SIGTERM)
        _ = try await running.program.untilEnd()
      }
    }
  }
}

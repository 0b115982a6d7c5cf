import AccountEvents
import EventLoop
import TransparencyLog

extension AuditReport {
  /// The report for people: one HTML page that loads nothing, with light and dark colours, to be read or printed.
  package var html: String {
    let page: Markup = """
      <!DOCTYPE html>
      <html lang="en">
      <head>
      <meta charset="utf-8">
      <meta name="viewport" content="width=device-width, initial-scale=1">
      <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
      <title>Audit report: \(checkpoint.checkpoint.origin)</title>
      <style>
      \(raw: Self.style)</style>
      </head>
      <body>
      <main>
      \(header)\(cards)\(timeSection)\(openSection)\(outcomeSection)\(decisionSection)\(gapSection)\(signatureSection)\
      \(logSection)</main>
      </body>
      </html>

      """
    return page.text
  }

  // MARK: Sections

  private var header: Markup {
    let faults = [
      overdueCount > 0 ? "\(overdueCount) overdue" : nil, gaps.count > 0 ? "the log has not seen everything" : nil,
    ].compactMap { $0 }
    let fine = open.count == 0 ? "every obligation of this period is met" : "\(open.count) open, none of them overdue"
    let words = isInOrder ? fine : faults.joined(separator: ", and ")
    let verdict: Markup = """
      <p class="verdict \(raw: isInOrder ? "good" : "bad")">\(words.prefix(1).uppercased() + words.dropFirst())</p>
      """
    return """
      <header>
      <p class="kind">Audit report</p>
      <h1>\(checkpoint.checkpoint.origin)</h1>
      <p class="period">What came from \(Self.words(period.from, or: "the log’s beginning")) \
      until \(Self.words(period.to ?? madeAt, or: "")), by the log of \(checkpoint.checkpoint.size) entries. \
      Made \(Self.words(madeAt, or: "")).</p>
      \(verdict)
      </header>

      """
  }

  private var cards: Markup {
    func card(_ name: String, _ count: Int, _ kind: String = "") -> Markup {
      #"<div class="card \#(raw: count > 0 ? kind : "")"><b>\#(count)</b><span>\#(name)</span></div>"#
    }
    return """
      <section class="cards">
      \(card("obligations", total.received))\(card("met", total.met))\(card("open", total.received - total.met))\
      \(card("overdue", overdueCount, "bad"))\(card("met late", total.late, "bad"))
      </section>

      """
  }

  private var timeSection: Markup {
    let all = types.count > 1 ? [(type: "all", figures: total)] : []
    let rows = (types + all).map { type, figures -> Markup in
      func time(_ share: Int) -> Markup {
        "<td class=\"number\">\(figures.times.quantile(perMille: share).map { TimeSpan.words($0) } ?? "–")</td>"
      }
      return """
        <tr\(raw: type == "all" ? " class=\"all\"" : "")><th scope="row">\(type)</th><td class="number">\(figures.received)</td><td class="number">\(figures.met)</td>\
        <td class="number">\(figures.received - figures.met)</td><td class="number">\(figures.late)</td>\
        \(time(500))\(time(900))\(time(990))\(time(1000))</tr>

        """
    }
    let milliseconds = deadline.wholeNanoseconds / 1_000_000
    let plot = total.times.count > 0 ? DistributionPlot(total.times, deadline: milliseconds).svg : ""
    return """
      <section>
      <h2>Time to completion</h2>
      <p>From the moment when an event came until every consumer that it concerns had done what it does. The deadline is \
      \(TimeSpan.words(milliseconds)).</p>
      \(raw: plot)\(table(
        ["Type", "Came", "Met", "Open", "Met late", "Half within", "90% within", "99% within", "Longest"],
        rows, or: "Nothing came in this period.", numbers: 1..<9))
      </section>

      """
  }

  private var openSection: Markup {
    let rows = open.rows.map { row -> Markup in
      """
      <tr\(raw: row.isOverdue ? " class=\"bad\"" : "")><th scope="row"><code>\(row.obligation.id.text)</code></th>\
      <td>\(row.obligation.type)</td><td>\(Self.words(row.obligation.came, or: ""))</td>\
      <td class="number">\(TimeSpan.words(row.age))</td><td>\(row.missing.names.joined(separator: ", "))</td>\
      <td class="number">\(String(row.index))</td></tr>

      """
    }
    return section(
      "Open", "Waiting for a consumer. Those older than the deadline are marked.",
      table(
        ["Event", "Type", "Came", "Age", "Waiting for", "Entry"], rows, of: open.count, or: "Nothing is open.",
        numbers: [3, 5]))
  }

  private var outcomeSection: Markup {
    let rows = outcomes.map { row -> Markup in
      """
      <tr><th scope="row">\(row.consumer)</th><td>\(row.outcome)</td><td class="number">\(row.count)</td></tr>

      """
    }
    return section(
      "What was done", "What the consumers have said in this period, about events of whatever age.",
      table(["Consumer", "Outcome", "Times"], rows, or: "Nothing was done.", numbers: [2]))
  }

  private var decisionSection: Markup {
    let rows = decisions.rows.map { row -> Markup in
      """
      <tr><td>\(Self.words(row.time, or: ""))</td><td>\(row.decision)</td><td>\(row.subject)</td>\
      <td><code>\(row.event?.text ?? "–")</code></td><td>\(row.person ?? "")</td><td>\(row.reason ?? "")</td>\
      <td class="number">\(String(row.index))</td></tr>

      """
    }
    return section(
      "What people decided", "About events in quarantine, dead letters and targets of erasures.",
      table(
        ["When", "Decision", "About", "Event", "Who", "Why", "Entry"], rows, of: decisions.count,
        or: "Nobody had to decide anything.", numbers: [6]))
  }

  private var gapSection: Markup {
    let rows = gaps.rows.map { gap -> Markup in
      """
      <tr class="bad"><td>\(Self.words(gap.time, or: ""))</td><td>\(gap.topic)</td><td class="number">\(String(gap.partition))</td>\
      <td class="number">\(String(gap.from))</td><td class="number">\(String(gap.to))</td><td>\(gap.cause.rawValue)</td></tr>

      """
    }
    return section(
      "What the log has not seen", "Records that Kafka no longer had, or that could not be read.",
      table(
        ["Noticed", "Topic", "Partition", "From offset", "To offset", "Why"], rows, of: gaps.count,
        or: "The log has seen everything.", numbers: 2..<5))
  }

  private var signatureSection: Markup {
    let counts = signatures.filter { $0.count > 0 }.map { "\(Markup.grouped($0.count)) \(Self.words($0.signature))" }
    let rows = unproven.rows.map { row -> Markup in
      """
      <tr><th scope="row"><code>\(row.obligation.id.text)</code></th><td>\(row.obligation.type)</td>\
      <td>\(Self.words(row.obligation.came, or: ""))</td><td>\(row.obligation.signature.rawValue)</td>\
      <td class="number">\(String(row.index))</td></tr>

      """
    }
    return section(
      "Apple’s signatures", counts.isEmpty ? "None came." : "\(counts.joined(separator: ", ")).",
      table(
        ["Event", "Type", "Came", "Signature", "Entry"], rows, of: unproven.count,
        or: "Each notification in this period was found to be signed by Apple.", numbers: [4]))
  }

  private var logSection: Markup {
    let witnesses = checkpoint.cosignatures.map { cosignature -> Markup in
      let time = Timestamp(seconds: Int64(clamping: cosignature.time))
      return "<li><code>\(cosignature.witness.text)</code>, \(Self.words(time, or: "at an unknown time"))</li>\n"
    }
    let cosigned: Markup = "<p>Cosigned by:</p>\n<ul>\n\(Markup(witnesses))</ul>"
    let left: Markup =
      checkpoint.uncosignedSize.map { size -> Markup in
        "<p>The log’s newest checkpoint, of \(size) entries, was not cosigned yet: what it has more is not in this report.</p>"
      } ?? ""
    return """
      <section>
      <h2>The log</h2>
      <p>Read from <code>\(place)</code>. Its first key, by which everything here was verified, and which you should have \
      from somebody else than from this page:</p>
      <pre>\(firstKey.text)</pre>
      <p>The checkpoint that this report follows from, as the log signed it:</p>
      <pre>\(String(decoding: checkpoint.note.bytes, as: UTF8.self))</pre>
      \(witnesses.isEmpty ? "" : cosigned)
      \(left)
      <p>Whoever has the log verifies it with <code>siwa audit verify</code>, or, without any of our software, with \
      <code>docs/verify.py</code>.</p>
      </section>

      """
  }

  // MARK: Parts

  private func section(_ name: String, _ words: String, _ contents: Markup) -> Markup {
    """
    <section>
    <h2>\(name)</h2>
    <p>\(words)</p>
    \(contents)
    </section>

    """
  }

  /// A table, or what is to be said where it has no rows. `numbers` are the columns that stand to the right.
  private func table(
    _ names: [String], _ rows: [Markup], of count: Int? = nil, or nothing: String, numbers: some Collection<Int>
  ) -> Markup {
    if rows.isEmpty { return "<p class=\"nothing\">\(nothing)</p>" }
    let head = names.enumerated().map { place, name -> Markup in
      #"<th scope="col"\#(raw: numbers.contains(place) ? " class=\"number\"" : "")>\#(name)</th>"#
    }
    let more: Markup =
      count.map { $0 > rows.count } ?? false
      ? "<p>These are the first \(rows.count) of \(count ?? 0); the log has them all.</p>" : ""
    return """
      <div class="scroll"><table>
      <thead><tr>\(Markup(head))</tr></thead>
      <tbody>
      \(Markup(rows))</tbody>
      </table></div>
      \(more)
      """
  }

  /// `2026-11-22 15:04:05 UTC`.
  private static func words(_ time: Timestamp?, or nothing: String) -> String {
    guard let text = time?.description else { return nothing }
    return "\(text.prefix(10)) \(text.dropFirst(11).prefix(8)) UTC"
  }

  private static func words(_ signature: AuditEntry.Obligation.Signature) -> String {
    switch signature {
    case .verified: "signed by Apple"
    case .none: "requested by operators or applications, without a signature"
    case .unknownKey: "by a key that was not known"
    case .refused: "with a signature that does not hold"
    }
  }

  private static let style = """
    :root { color-scheme: light dark; --ink: #1d1d1f; --soft: #6b6b70; --paper: #ffffff; --panel: #f5f5f7;
      --line: #dcdce0; --bar: #2f6fde; --mark: #1d1d1f; --good: #14713d; --goodpaper: #e5f5ec; --bad: #b3261e;
      --badpaper: #fdecea; }
    @media (prefers-color-scheme: dark) { :root { --ink: #f2f2f4; --soft: #a3a3aa; --paper: #161618; --panel: #222226;
      --line: #3a3a40; --bar: #6ea3ff; --mark: #f2f2f4; --good: #6fd699; --goodpaper: #17301f; --bad: #ff8a80;
      --badpaper: #3a1c1a; } }
    * { box-sizing: border-box; }
    body { margin: 0; background: var(--paper); color: var(--ink);
      font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
    main { max-width: 940px; margin: 0 auto; padding: 48px 24px 72px; }
    .kind { margin: 0; color: var(--soft); font-size: 13px; font-weight: 600; letter-spacing: .08em;
      text-transform: uppercase; }
    h1 { margin: 4px 0 8px; font-size: 30px; line-height: 1.2; overflow-wrap: anywhere; }
    h2 { margin: 44px 0 4px; font-size: 19px; }
    p { margin: 0 0 12px; } section > p { color: var(--soft); }
    .verdict { display: inline-block; margin: 12px 0 0; padding: 6px 14px; border-radius: 999px; font-weight: 600; }
    .verdict.good { color: var(--good); background: var(--goodpaper); }
    .verdict.bad { color: var(--bad); background: var(--badpaper); }
    .cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(130px, 1fr)); gap: 12px; margin-top: 28px; }
    .card { padding: 14px 16px; border-radius: 12px; background: var(--panel); }
    .card b { display: block; font-size: 26px; line-height: 1.2; font-variant-numeric: tabular-nums; }
    .card span { color: var(--soft); } .card.bad b { color: var(--bad); }
    .scroll { overflow-x: auto; }
    table { width: 100%; margin: 8px 0 12px; border-collapse: collapse; font-size: 14px; }
    th, td { padding: 7px 10px; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
    th:first-child, td:first-child { padding-left: 0; } th:last-child, td:last-child { padding-right: 0; }
    thead th { color: var(--soft); font-weight: 500; font-size: 13px; } tbody th { font-weight: 500; }
    .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
    tr.bad td, tr.bad th { color: var(--bad); } tr.all td, tr.all th { font-weight: 600; }
    .nothing { padding: 12px 16px; border-radius: 12px; background: var(--panel); color: var(--soft); }
    code, pre { font: 13px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
    code { overflow-wrap: anywhere; }
    pre { margin: 8px 0 16px; padding: 14px 16px; border-radius: 12px; background: var(--panel); white-space: pre-wrap;
      overflow-wrap: anywhere; }
    .plot { display: block; width: 100%; height: auto; margin: 8px 0 4px; }
    .plot .bar { fill: var(--bar); } .plot .grid { stroke: var(--line); stroke-width: 1; }
    .plot text { fill: var(--soft); font-size: 12px; } .plot .end { text-anchor: end; } .plot .mid { text-anchor: middle; }
    .plot line.quantile { stroke: var(--mark); stroke-width: 1; stroke-dasharray: 3 3; } .plot text.quantile { fill: var(--ink); }
    .plot line.deadline { stroke: var(--bad); stroke-width: 1.5; } .plot text.deadline { fill: var(--bad); }
    @media print { :root { color-scheme: light; } main { max-width: none; padding: 0; } section { break-inside: avoid-page; }
      tr { break-inside: avoid; } thead { display: table-header-group; } .scroll { overflow: visible; }
      .card, pre, .nothing, .verdict { print-color-adjust: exact; } }

    """
}

import AccountEvents

extension Timestamp {
  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  /// A moment as the field `Date` has it (RFC 9110 §5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`. Nil for any other form; the
  /// two obsolete ones are not read.
  init?(httpDate text: String) {
    let words = text.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
    guard words.count == 6, words[0].utf8.count == 4, words[0].hasSuffix(","), words[5] == "GMT" else { return nil }
    func number(_ text: some StringProtocol, _ digits: Int) -> Int64? {
      guard text.utf8.count == digits, text.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) else { return nil }
      return Int64(text)
    }
    let time = words[4].split(separator: ":", omittingEmptySubsequences: false)
    guard let day = number(words[1], 2), 1...31 ~= day, let index = Self.months.firstIndex(of: words[2]),
      let year = number(words[3], 4), time.count == 3, let hour = number(time[0], 2), hour < 24,
      let minute = number(time[1], 2), minute < 60, let second = number(time[2], 2), second <= 60
    else { return nil }
    // Years that begin in March put the leap day last.
    let month = Int64(index + 1)
    let (start, past) = (month > 2 ? year : year - 1, (month + 9) % 12)
    let days = start * 365 + start / 4 - start / 100 + start / 400 + (153 * past + 2) / 5 + day - 1 - 719_468
    self.init(seconds: days * 86_400 + hour * 3600 + minute * 60 + second)
  }
}

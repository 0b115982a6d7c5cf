/// "Did you mean": the known name nearest to a misspelt one.
enum Suggestion {
  /// The nearest of `names`, if it is near enough to be what was meant.
  static func nearest(to text: String, among names: some Sequence<String>) -> String? {
    // A distance costs the product of the lengths; nobody means something of this length.
    guard text.utf8.count <= 100 else { return nil }
    let wanted = Array(text.lowercased().utf8)
    // A third of what was misspelt, which is the last key: the groups before it are known.
    let limit = max(1, (text.split(separator: ".").last?.utf8.count ?? 0) / 3)
    var best: (name: String, distance: Int)?
    for name in names {
      let distance = distance(wanted, Array(name.lowercased().utf8))
      if distance <= limit, distance < best?.distance ?? .max { best = (name, distance) }
    }
    return best?.name
  }

  /// The number of bytes to insert, delete, replace or swap with their neighbour (optimal string alignment).
  static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
    if left.isEmpty || right.isEmpty { return left.count + right.count }
    var beforeLast: [Int] = []
    var last = Array(0...right.count)
    for row in 1...left.count {
      var current = [row]
      for column in 1...right.count {
        let isSame = left[row - 1] == right[column - 1]
        var cost = min(last[column] + 1, current[column - 1] + 1, last[column - 1] + (isSame ? 0 : 1))
        if row > 1, column > 1, left[row - 1] == right[column - 2], left[row - 2] == right[column - 1] {
          cost = min(cost, beforeLast[column - 2] + 1)
        }
        current.append(cost)
      }
      (beforeLast, last) = (last, current)
    }
    return last[right.count]
  }
}

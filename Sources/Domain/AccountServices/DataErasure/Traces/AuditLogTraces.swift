package import EventLoop
import Glibc
import TransparencyLog

/// Searches the directory of an audit log for a person: every file in it, entries and whatever else lies there.
///
/// Entries have the keyed hash alone. One that names somebody all the same could never be taken back, so it is said which.
/// In memory are the names in one folder and a piece of one file, however large the log is.
package struct AuditLogTraces: Sendable {
  /// How many files are searched in a step.
  private static let filesAtOnce = 64
  /// How many places are named; the others are counted.
  private static let mostNamed = 10

  /// How many entries were searched so far.
  package var entryCount: Int64 { Int64(clamping: fullBundles) * Int64(TilePath.fullWidth) + Int64(edge) }
  /// How many entries the log's checkpoint says that there are, which nobody has verified; nil before the first step, and
  /// where there is none.
  package private(set) var size: Int64?

  private let directory: String
  private let marks: PersonMarks
  private var hasBegun = false
  private var isThere = true
  /// Folders and files that are to be searched still, as paths below the directory.
  private var folders: [String] = [""]
  private var files: [String] = []
  private var fullBundles = 0
  /// The entries of the largest partial bundle that no full one has replaced.
  private var edge = 0
  private var otherFiles = 0
  /// Where the person is named: the first places, and how many there are; whether an entry is one of them.
  private var named: [String] = []
  private var namedCount = 0
  private var isInEntry = false

  /// A search of the log in a directory.
  package init(_ directory: String, for marks: PersonMarks) { (self.directory, self.marks) = (directory, marks) }

  /// Searches some files more; false once all were searched. It blocks while it reads.
  package mutating func step() throws(SystemError) -> Bool {
    if !hasBegun { try begin() }
    for _ in 0..<Self.filesAtOnce {
      while files.isEmpty {
        guard let folder = folders.popLast() else { return false }
        try list(folder)
      }
      try search(files.removeLast())
    }
    return true
  }

  private mutating func begin() throws(SystemError) {
    hasBegun = true
    if unsafe access(directory, F_OK) != 0, errno == ENOENT { (isThere, folders) = (false, []) }
    do throws(LogError) {
      let note = try LogDirectory(directory).contents(of: LogPath.checkpoint, limit: SignedNote.maximumByteCount)
      size = try note.map { note throws(LogError) in Int64(clamping: try Checkpoint(SignedNote(note).text).size) }
    } catch {
      // It only says how far the search is: what lies there is searched all the same.
      size = nil
    }
  }

  private mutating func list(_ folder: String) throws(SystemError) {
    do throws(SystemError) {
      files = try DirectoryNames.read(path(of: folder)).map { folder.isEmpty ? $0 : "\(folder)/\($0)" }
    } catch {
      guard error.code == ENOENT, !folder.isEmpty else { throw error }
      // The folder of a tile's partial files goes once the tile is full.
      if folder.hasSuffix(".p") { files = [String(folder.dropLast(2))] }
    }
  }

  private mutating func search(_ file: String) throws(SystemError) {
    var status = stat()
    let tile = TilePath(file)
    do throws(SystemError) {
      guard unsafe lstat(path(of: file), &status) == 0 else { throw .current }
      switch status.st_mode & S_IFMT {
      case S_IFDIR: return folders.append(file)
      case S_IFREG: if try marks.areIn(file: path(of: file)) { note(file, tile) }
      default: return
      }
    } catch {
      guard error.code == ENOENT else { throw error }
      // What goes meanwhile is a draft, or a partial tile, which the full one begins with.
      if let tile, !tile.isFull { files.append(tile.full.text) }
      return
    }
    guard let tile, tile.kind == .entries else { return otherFiles += 1 }
    if tile.isFull {
      fullBundles += 1
    } else if unsafe access(path(of: tile.full.text), F_OK) != 0 {
      edge = max(edge, tile.width)
    }
  }

  /// Notes where the person stands in a file.
  private mutating func note(_ file: String, _ tile: TilePath?) {
    var places: [Int] = []
    if let tile, tile.kind == .entries, let bundle = bundle(in: file) {
      places = bundle.entries.indices.filter { marks.areIn(Array(bundle.bytes[bundle.entries[$0]])) }
      for place in places { note("entry \(tile.index * UInt64(TilePath.fullWidth) + UInt64(place)) in \(file)") }
      isInEntry = isInEntry || !places.isEmpty
    }
    if places.isEmpty { note("bytes in \(file)") }
  }

  private mutating func note(_ place: String) {
    namedCount += 1
    if named.count < Self.mostNamed { named.append(place) }
  }

  /// Nil of a file that is not to be had any more, or too large for a bundle.
  private func bundle(in file: String) -> EntryBundle? {
    do throws(LogError) {
      return try LogDirectory(directory).contents(of: file, limit: EntryBundle.maximumByteCount).map { EntryBundle($0) }
    } catch {
      return nil
    }
  }

  private func path(of file: String) -> String { file.isEmpty ? directory : "\(directory)/\(file)" }

  /// What was found so far.
  package var trace: PersonTrace {
    let place = "audit-log \(directory)"
    if !isThere { return PersonTrace(place, "no audit log on this machine", .nothing) }
    if named.isEmpty {
      return PersonTrace(place, "nothing in \(entryCount) entries and \(otherFiles) other files", .nothing)
    }
    let rest = namedCount > named.count ? ", and \(namedCount - named.count) more" : ""
    return PersonTrace(
      place, "in the clear: \(named.joined(separator: ", "))\(rest)",
      .staying(isInEntry ? "for ever: no entry can be taken out of a log" : "until somebody removes these files"))
  }
}

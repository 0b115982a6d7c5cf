import Glibc

/// What the process uses, as the kernel tells. What it does not tell is no number.
enum ProcessUsage {
  /// CPU time since the start, of all threads, in seconds.
  static var cpuSeconds: Double {
    var usage = rusage()
    guard unsafe getrusage(RUSAGE_SELF.rawValue, &usage) == 0 else { return .nan }
    return [usage.ru_utime, usage.ru_stime].reduce(0) { $0 + Double($1.tv_sec) + Double($1.tv_usec) / 1e6 }
  }

  /// Memory in use, in bytes: the second number of statm counts pages.
  static var residentMemory: Double {
    let numbers = read("/proc/self/statm").split { $0 == " " }
    return numbers.count > 1 ? (Double(numbers[1]) ?? .nan) * Double(sysconf(CInt(_SC_PAGESIZE))) : .nan
  }

  /// Open descriptors, but for the one that looks.
  static var openDescriptors: Double {
    guard let directory = unsafe opendir("/proc/self/fd") else { return .nan }
    defer { unsafe closedir(directory) }
    var count = 0
    while unsafe readdir(directory) != nil { count += 1 }
    // Neither `.` and `..` nor the directory's own.
    return Double(count - 3)
  }

  /// How many descriptors may be open.
  static var maximumDescriptors: Double {
    var limit = rlimit()
    guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return .nan }
    return limit.rlim_cur == .max ? .infinity : Double(limit.rlim_cur)
  }

  /// When the process began, in seconds since 1970: the machine's boot, and the ticks from there (proc(5), field 22 of
  /// stat; the name in field 2 may hold anything but ends with the last parenthesis).
  static var startTime: Double {
    let fields = read("/proc/self/stat").split { $0 == ")" }.last?.split { $0 == " " } ?? []
    let boot = read("/proc/stat").split { $0 == "\n" }.first { $0.hasPrefix("btime ") }?.dropFirst(6)
    guard fields.count > 19, let ticks = Double(fields[19]), let boot = boot.flatMap({ Double($0) }) else {
      return .nan
    }
    return boot + ticks / Double(sysconf(CInt(_SC_CLK_TCK)))
  }

  /// A file of the kernel's; empty where there is none.
  private static func read(_ path: String) -> String {
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return "" }
    defer { close(file) }
    var bytes: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 16_384)
    // /proc/stat has a line for each interrupt: some machines have many. The boot's stands behind them.
    while bytes.count < 1 << 22 {
      let count = unsafe Glibc.read(file, &piece, piece.count)
      if count <= 0 { break }
      bytes += piece[..<count]
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

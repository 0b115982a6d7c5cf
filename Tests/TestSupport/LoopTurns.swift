import EventLoop

/// Lets the loop turn a few times, instead of sleeping: tasks that were started wait by then for what they wait for, and
/// what was sent over loopback has been reported and read.
@Loop
public func turn() async { for _ in 0..<10 { await Loop.nextTurn() } }

import EventLoop

/// What became of a record.
typealias DeliveryResult = Result<KafkaPosition, KafkaError>

/// The records that librdkafka has and that were not reported yet, each in a numbered place.
///
/// librdkafka carries the number through to the delivery report, so finding the sender is an index into an array.
/// There are never more places than librdkafka takes records.
struct Deliveries {
  private struct Place {
    /// Nil while the place is free, and when the sender was answered before the report came.
    var sender: Sender?
    var due = MonotonicTime.distantFuture
  }

  private var places: [Place] = []
  private var free: [Int] = []
  /// How many senders wait.
  private(set) var waiting = 0

  /// Takes a place for a record that is about to be handed over.
  mutating func reserve() -> Int {
    if let place = free.popLast() { return place }
    places.append(Place())
    return places.count - 1
  }

  /// Gives a place back whose record librdkafka did not take.
  mutating func release(_ place: Int) { free.append(place) }

  /// Names the sender that waits for the record in `place`.
  mutating func wait(_ sender: Sender, in place: Int, until due: MonotonicTime) {
    places[place].sender = sender
    places[place].due = due
    waiting += 1
  }

  /// Frees the place of a record that was reported. Returns the sender, if it still waits.
  mutating func finish(_ place: Int) -> Sender? {
    let sender = places[place].sender
    if sender != nil { waiting -= 1 }
    places[place] = Place()
    free.append(place)
    return sender
  }

  /// Takes out the senders whose time is over; their places stay taken until the report comes.
  mutating func takeDue(by time: MonotonicTime) -> [Sender] {
    var senders: [Sender] = []
    for index in places.indices where places[index].due <= time {
      if let sender = places[index].sender { senders.append(sender) }
      places[index] = Place()
    }
    waiting -= senders.count
    return senders
  }
}

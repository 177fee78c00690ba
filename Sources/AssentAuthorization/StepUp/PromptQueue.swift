/// Who may ask the user, one call at a time, and in which order. It does no I/O.
///
/// Calls of one key want the same thing: what comes of the one that asks is told to all of them. The others wait until
/// it is their turn.
struct PromptQueue {
    /// What follows when the one that asked is done.
    struct Turn: Equatable {
        /// Those that are told what came of it.
        var told: [Int] = []
        /// The one that asks now.
        var next: Int?
    }

    private struct Place {
        let ticket: Int
        let key: String
    }

    private var asking: Place?
    private var line: [Place] = []
    private var lastTicket = 0

    /// How many calls wait.
    var count: Int { line.count }

    /// How many may.
    static let limit = 1024

    /// Whether no other call may wait.
    var isFull: Bool { line.count >= Self.limit }

    /// A call that wants to ask.
    ///
    /// - Returns: its ticket, and whether it may ask at once.
    mutating func enter(_ key: String) -> (ticket: Int, mayAsk: Bool) {
        lastTicket += 1
        let place = Place(ticket: lastTicket, key: key)
        guard asking == nil else {
            line.append(place)
            return (place.ticket, false)
        }
        asking = place
        return (place.ticket, true)
    }

    /// The one that asks is done.
    ///
    /// - Parameters:
    ///   - ticket: its ticket.
    ///   - isShared: whether what came of it is also what the others of its key get. It is not where the call ended for
    ///     a reason of its own.
    /// - Returns: what follows.
    mutating func finish(_ ticket: Int, isShared: Bool) -> Turn {
        guard let done = asking, done.ticket == ticket else { return Turn() }
        var turn = Turn()
        if isShared {
            turn.told = line.filter { $0.key == done.key }.map(\.ticket)
            line.removeAll { $0.key == done.key }
        }
        asking = line.isEmpty ? nil : line.removeFirst()
        turn.next = asking?.ticket
        return turn
    }

    /// A call that waits gives up.
    ///
    /// - Returns: whether it was waiting.
    mutating func withdraw(_ ticket: Int) -> Bool {
        guard let index = line.firstIndex(where: { $0.ticket == ticket }) else { return false }
        line.remove(at: index)
        return true
    }
}

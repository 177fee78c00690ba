/// How what is on one server relates to what is on another.
enum ServerRelation: Sendable, Hashable {
    /// They are one server, under two names.
    case same
    /// The first has everything that nodes have done on the second, and more.
    case contains
    /// The second has everything that nodes have done on the first, and more.
    case isContained
    /// Each may have what the other lacks.
    case neither

    /// Compares two servers that can both be written to.
    init(_ first: ServerSighting, _ second: ServerSighting) {
        guard first.incarnation != second.incarnation else {
            self = .same
            return
        }
        self =
            switch (Self.contains(first, second), Self.contains(second, first)) {
            case (true, false): .contains
            case (false, true): .isContained
            // Equal servers will differ after the next write: which of them is the right one, nobody can say.
            case (true, true), (false, false): .neither
            }
    }

    private static func contains(_ first: ServerSighting, _ second: ServerSighting) -> Bool {
        guard let latest = second.generations.last else { return true }
        guard let own = first.generations.last, first.generations.contains(latest) else { return false }
        // The second one was promoted, too, without a node that noticed.
        if own.number > latest.number { return !second.lacksGeneration }
        if !first.lacksGeneration, second.lacksGeneration { return false }
        if first.lacksGeneration, second.lacksGeneration { return false }
        return second.marks.allSatisfy { node, mark in first.marks[node].map { $0 >= mark } ?? false }
    }
}

/// Which of the servers of a configuration has everything.
enum ServerChoice: Sendable, Hashable {
    /// No server can be written to.
    case nobody
    /// The host at this index. Those at `behind` can be written to, too, and lack what it has.
    case host(Int, behind: [Int])
    /// Several can be written to, and none of them has everything.
    case conflict([Int])

    /// Chooses among the servers that can be written to, by their index in the configuration.
    init(_ writable: [(index: Int, sighting: ServerSighting)]) {
        guard !writable.isEmpty else {
            self = .nobody
            return
        }
        for candidate in writable {
            let relations = writable.map { ($0.index, ServerRelation(candidate.sighting, $0.sighting)) }
            guard relations.allSatisfy({ $0.1 == .same || $0.1 == .contains }) else { continue }
            self = .host(candidate.index, behind: relations.filter { $0.1 == .contains }.map(\.0))
            return
        }
        self = .conflict(writable.map(\.index))
    }
}

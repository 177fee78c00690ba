/// Why a node does not use a server, or writes nothing.
enum ServerRefusal: Error, Sendable, Hashable {
    /// Those at these hosts accept writes, and none has everything that the others have.
    case conflict([Int])
    /// Another server has what this one lacks.
    case behind
    /// It lacks changes that were acknowledged, and none may be lost.
    case lossy
    /// It is older than what the node has used, or another database.
    case otherHistory
    /// It lacks what the node has written in this generation.
    case copy
    /// It does not keep which generation it is.
    case forgetful
}

/// What a node believes about the servers of its database: which of them it uses, and what the next one has to show.
///
/// It decides without I/O; ``PostgreSQLKeeper`` looks, asks it, and does what follows.
struct ServerBelief: Sendable, Hashable {
    /// The node's name, under which it writes its mark.
    let node: String
    /// Whether nothing that was acknowledged may be lost.
    let requiresStandby: Bool
    /// What the node remembers.
    private(set) var memory: NodeMemory?
    /// The server that is used.
    private(set) var current: ServerIncarnation?
    /// The hosts that accept writes while none has everything; empty if nothing keeps the node from writing.
    private(set) var conflict: [Int] = []
    /// How many hosts accept writes and lack what the one has that is used.
    private(set) var behind = 0

    init(node: String, requiresStandby: Bool, memory: NodeMemory? = nil) {
        self.node = node
        self.requiresStandby = requiresStandby
        self.memory = memory
    }

    // MARK: - A server that answers

    /// Whether it is the one that is used, and shows nothing new.
    ///
    /// - Parameters:
    ///   - sighting: what it shows.
    ///   - known: what the node remembered before the server was asked.
    /// - Returns: false when it has to be judged.
    /// - Throws: ``ServerRefusal``: what the node has used is gone from it, as after a restore beneath the node.
    func isKnown(_ sighting: ServerSighting, remembering known: NodeMemory?) throws(ServerRefusal) -> Bool {
        guard current == sighting.incarnation else { return false }
        guard let known else { return !sighting.hasTables }
        guard try !lacks(sighting, known) else { return false }
        return !sighting.lacksGeneration && sighting.generations.last?.number == known.generation
    }

    /// Whether a server may be used of which something is new.
    ///
    /// - Parameters:
    ///   - sighting: what it shows.
    ///   - choice: which of all hosts has everything.
    ///   - chosen: what runs there.
    /// - Returns: whether it lacks changes that this node saw acknowledged.
    /// - Throws: ``ServerRefusal``.
    func judge(
        _ sighting: ServerSighting, among choice: ServerChoice, chosen: ServerIncarnation?
    ) throws(ServerRefusal) -> Bool {
        if case .conflict(let hosts) = choice { throw .conflict(hosts) }
        if let chosen, chosen != sighting.incarnation { throw .behind }
        guard let memory else { return false }
        return try lacks(sighting, memory)
    }

    /// Whether a server lacks changes that the node saw acknowledged, and is used all the same.
    private func lacks(_ sighting: ServerSighting, _ memory: NodeMemory) throws(ServerRefusal) -> Bool {
        switch memory.judge(sighting, node: node) {
        case .accepted: return false
        case .lossy where !requiresStandby: return true
        case .lossy: throw .lossy
        case .otherHistory: throw .otherHistory
        case .copy: throw .copy
        }
    }

    /// What is remembered from when a server is used.
    ///
    /// - Throws: ``ServerRefusal``: nobody has written there which generation it is.
    func memory(of sighting: ServerSighting) throws(ServerRefusal) -> NodeMemory {
        guard let latest = sighting.generations.last, !sighting.lacksGeneration else { throw .forgetful }
        return NodeMemory(
            generation: latest.number, token: latest.token, mark: sighting.marks[node] ?? 0, owner: node)
    }

    // MARK: - Changes

    /// What was remembered before the last start.
    mutating func remember(_ memory: NodeMemory?) { self.memory = memory }

    /// A server is used from here on, and none that lacks what it has.
    mutating func use(_ incarnation: ServerIncarnation, remembering memory: NodeMemory?) {
        if let memory { self.memory = memory }
        current = incarnation
        conflict = []
    }

    /// The next connection has to show everything anew.
    mutating func forgetCurrent() { current = nil }

    /// All hosts were looked at.
    mutating func see(_ choice: ServerChoice, chosen: ServerIncarnation?) {
        switch choice {
        case .nobody: break
        case .conflict(let hosts): conflict = hosts
        case .host(_, let behind):
            conflict = []
            self.behind = behind.count
            // The next connection finds out whether it is to be believed.
            if let chosen, chosen != current { current = nil }
        }
    }

    /// A mark of the node was acknowledged by a server. Returns what is remembered from then on; `nil` if another
    /// server, or another generation, is used by now.
    mutating func acknowledge(
        mark: Int64, of generation: Int64, by incarnation: ServerIncarnation?
    ) -> NodeMemory? {
        guard incarnation != nil, current == incarnation, memory?.generation == generation else { return nil }
        memory?.mark = mark
        return memory
    }
}

import AssentCore

/// What a node remembers of the database that it uses: enough to recognise a server that lacks some of it.
struct NodeMemory: Sendable, Hashable {
    /// The number of the newest generation that it has used.
    var generation: Int64
    /// That generation's token.
    var token: String
    /// The highest mark of its own that the database has acknowledged.
    var mark: Int64
    /// The id by which that mark was written; `nil` in a file of an earlier version. In a directory that was copied,
    /// and whose id was removed, it is the other node's.
    var owner: String?

    /// What a node thinks of a server.
    enum Judgement: Sendable, Hashable {
        /// The server has everything that the node knows of.
        case accepted
        /// It took over, or was restored, and lacks changes that this node saw acknowledged.
        case lossy
        /// It went another way, or is older: what the node has used is not there.
        case otherHistory
        /// It is of the same generation, and lacks what the node has written since: a copy, or a disk of before.
        case copy
    }

    /// Judges a server by its history, and by the mark there of the node that has written the one that is remembered:
    /// `node`, unless it was another.
    func judge(_ sighting: ServerSighting, node: String) -> Judgement {
        guard sighting.generations.contains(where: { $0.number == generation && $0.token == token }) else {
            return .otherHistory
        }
        guard sighting.marks[owner ?? node] ?? 0 < mark else { return .accepted }
        let later = sighting.generations.filter { $0.number > generation }
        if later.contains(where: \.isRestored) { return .accepted }
        return later.isEmpty && !sighting.lacksGeneration ? .copy : .lossy
    }

    // MARK: - As text

    /// Reads what ``text`` has written; `nil` if it is anything else.
    init?(text: String) {
        guard let value = try? JSONValue.parse(text), let generation = value["generation"]?.integer,
            let mark = value["mark"]?.integer, let token = value["token"]?.string, generation > 0, mark >= 0,
            !token.isEmpty
        else { return nil }
        self.init(generation: generation, token: token, mark: mark)
        if let said = value["node"] {
            guard let id = said.string, !id.isEmpty else { return nil }
            owner = id
        }
    }

    init(generation: Int64, token: String, mark: Int64, owner: String? = nil) {
        self.generation = generation
        self.token = token
        self.mark = mark
        self.owner = owner
    }

    /// A line of JSON.
    var text: String {
        var members: JSONObject = [
            "generation": .integer(generation), "token": .string(token), "mark": .integer(mark),
        ]
        if let owner { members["node"] = .string(owner) }
        return JSONValue.object(members).serialized() + "\n"
    }
}

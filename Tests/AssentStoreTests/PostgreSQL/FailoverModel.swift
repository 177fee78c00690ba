#if PostgreSQL && os(Linux)
@testable import AssentStore

/// Servers, the links between them, and nodes as values. What decides is the product's own: ``ServerBelief``,
/// ``ServerChoice``, ``NodeMemory``, ``CommitSearch``.
///
/// The servers are a primary, its two standbys, of which one has to confirm a commit, and the place of a copy. What
/// docs/scaling.md asks of who manages the servers is a condition of the moves; each says so.
struct FailoverModel {
    /// What is on a server's disk.
    struct Content {
        var generations: [DatabaseGeneration] = []
        var marks: [String: Int64] = [:]
        /// Which node has spent which thing.
        var spent: [Int: String] = [:]
        /// How far its log is.
        var place = 0
    }

    /// A commit that no standby has confirmed yet.
    struct Wait {
        let thing: Int
        let node: String
        /// Whether everybody on the server sees it, since its wait was cut short.
        var isVisible = false
        /// The nodes that know so. (One that has no part in a wait that an administrator cuts short does not.)
        var noticed: Set<String> = []
    }

    struct Server {
        var content = Content()
        /// In the order of its log.
        var waits: [Wait] = []
        var isUp = true
        var isPrimary = false
        /// For a standby: whose.
        var follows: Int?
        var timeline = 1
        var startedAt: Int64
        /// Whether its commits wait for a standby.
        var isReplicating = false

        var sighting: ServerSighting {
            ServerSighting(
                incarnation: .init(system: "s", timeline: "\(timeline)", startedAt: startedAt),
                generations: content.generations, marks: content.marks)
        }
    }

    struct Node {
        let name: String
        var belief: ServerBelief
        /// Which runs of servers have confirmed a commit to it.
        var passed: Set<ServerIncarnation> = []
        /// The servers that it reaches.
        var reach: Set<Int>
        /// What its COMMIT waits for.
        var pending: (thing: Int, server: Int)?
        /// A thing whose COMMIT was lost.
        var lost: Int?
        var search: CommitSearch.Step = .look
        /// Where it was looked for.
        var seenOn: ServerIncarnation?
    }

    static let copyPlace = 3

    let requiresStandby: Bool
    var servers: [Server]
    var nodes: [Node]
    var isLinked = true
    var now: Int64 = 10
    /// A backup, or a copy of the disk.
    var snapshot: (content: Content, timeline: Int)?
    /// Whether a backup was restored, and `assent restore-fence` has not run.
    var isUnfenced = false
    var granted: [Int: String] = [:]
    /// Granted while no standby had to confirm it: may be lost, as docs/scaling.md says.
    var unprotected: Set<Int> = []
    var violations: [String] = []
    var counts: [String: Int] = [:]

    init(requiresStandby: Bool) {
        self.requiresStandby = requiresStandby
        servers = (1...4).map { Server(startedAt: Int64($0)) }
        servers[0].isPrimary = true
        servers[0].isReplicating = true
        for standby in [1, 2] { servers[standby].follows = 0 }
        servers[Self.copyPlace].isUp = false
        let all = Set(servers.indices)
        nodes = ["m", "n"].map {
            Node(
                name: $0, belief: ServerBelief(node: $0, requiresStandby: requiresStandby),
                reach: all)
        }
    }

    mutating func count(_ what: String) { counts[what, default: 0] += 1 }

    // MARK: - Servers

    /// The standbys that get what a server commits.
    func standbys(of index: Int) -> [Int] {
        servers.indices.filter { servers[$0].isUp && servers[$0].follows == index }
    }

    /// Whether a commit on this server is answered now.
    func confirms(_ index: Int) -> Bool {
        guard servers[index].isUp, servers[index].isPrimary else { return false }
        return !servers[index].isReplicating || isLinked && !standbys(of: index).isEmpty
    }

    /// Whether an answered commit is a proof to a node.
    func proves(_ index: Int) -> Bool { confirms(index) && (servers[index].isReplicating || !requiresStandby) }

    /// What has waited has ended, and the standbys have everything.
    mutating func replicate(_ index: Int) {
        for wait in servers[index].waits { servers[index].content.spent[wait.thing] = wait.node }
        servers[index].waits = []
        servers[index].content.place += 1
        if servers[index].isReplicating {
            for standby in standbys(of: index) { servers[standby].content = servers[index].content }
        }
        for node in nodes.indices where nodes[node].pending?.server == index { answer(node) }
    }

    /// The server answers a COMMIT, and says nothing more.
    private mutating func answer(_ node: Int) {
        guard let (thing, server) = nodes[node].pending else { return }
        nodes[node].pending = nil
        let incarnation = servers[server].sighting.incarnation
        guard nodes[node].belief.current == incarnation else { return lose(node, thing) }
        guard servers[server].isReplicating || !requiresStandby else {
            // The names behind COMMIT are not those from before it.
            nodes[node].passed.remove(incarnation)
            return lose(node, thing)
        }
        grant(thing, node, on: server)
    }

    /// A connection has ended, or an answer came with a warning, while a COMMIT waited.
    mutating func cut(_ server: Int) {
        for place in servers[server].waits.indices { servers[server].waits[place].isVisible = true }
        for node in nodes.indices {
            guard let (thing, place) = nodes[node].pending, place == server else { continue }
            notice(thing, node, on: server)
            nodes[node].pending = nil
            nodes[node].passed.remove(servers[server].sighting.incarnation)
            lose(node, thing)
        }
    }

    mutating func notice(_ thing: Int, _ node: Int, on server: Int) {
        for place in servers[server].waits.indices where servers[server].waits[place].thing == thing {
            servers[server].waits[place].noticed.insert(nodes[node].name)
        }
    }

    mutating func lose(_ node: Int, _ thing: Int) {
        nodes[node].lost = thing
        nodes[node].search = .look
    }

    mutating func grant(_ thing: Int, _ node: Int, on server: Int) {
        let isProtected = servers[server].isReplicating || !servers.contains { $0.follows == server }
        if !isProtected {
            if requiresStandby { violations.append("\(thing) granted, and no standby had to have it") }
            unprotected.insert(thing)
        }
        if let first = granted[thing], !unprotected.contains(thing) {
            violations.append("\(thing) granted to \(first), and to \(nodes[node].name)")
        }
        granted[thing] = nodes[node].name
        count("granted")
    }

    // MARK: - A node opens a connection

    /// The server that a node uses, as the product finds it: it looks at all that it reaches when one is new to it.
    mutating func admit(_ node: Int) -> Int? {
        let writable = nodes[node].reach.sorted().filter { servers[$0].isUp && servers[$0].isPrimary }
        if let used = writable.first(where: { servers[$0].sighting.incarnation == nodes[node].belief.current }) {
            do {
                let belief = nodes[node].belief
                if try belief.isKnown(servers[used].sighting, remembering: belief.memory) {
                    return confirm(used, to: node) ? used : nil
                }
            } catch {
                nodes[node].belief.forgetCurrent()
                count("\(error)")
                return nil
            }
        }
        let choice = ServerChoice(writable.map { ($0, servers[$0].sighting) })
        guard case .host(let index, _) = choice else {
            if case .conflict = choice { count("conflict") }
            return nil
        }
        guard servers[index].isReplicating || !requiresStandby else { return nil }
        let incarnation = servers[index].sighting.incarnation
        do {
            let isLossy = try nodes[node].belief.judge(servers[index].sighting, among: choice, chosen: incarnation)
            if isLossy { count("loss accepted") }
            guard confirm(index, to: node) else { return nil }
            if servers[index].sighting.lacksGeneration { begin(index) }
            let memory = try nodes[node].belief.memory(of: servers[index].sighting)
            nodes[node].belief.use(incarnation, remembering: memory)
            return index
        } catch {
            count("\(error)")
            return nil
        }
    }

    private mutating func confirm(_ index: Int, to node: Int) -> Bool {
        let incarnation = servers[index].sighting.incarnation
        if nodes[node].passed.contains(incarnation) { return true }
        guard proves(index) else {
            count("not confirmed")
            return false
        }
        replicate(index)
        nodes[node].passed.insert(incarnation)
        return true
    }

    private mutating func begin(_ index: Int, isRestored: Bool = false) {
        guard confirms(index) else { return }
        let number = (servers[index].content.generations.last?.number ?? 0) + 1
        servers[index].content.generations.append(
            DatabaseGeneration(
                number: number, token: "\(number)-\(index)-\(now)", system: "s",
                timeline: "\(servers[index].timeline)", isRestored: isRestored))
        replicate(index)
    }

    /// `assent restore-fence`, and `assent database adopt` on each node that still refuses.
    mutating func fenceRestored(_ index: Int) {
        begin(index, isRestored: true)
        granted = granted.filter { servers[index].content.spent[$0.key] != nil }
        for node in nodes.indices {
            let memory = nodes[node].belief.memory
            if memory?.judge(servers[index].sighting, node: nodes[node].name) == .accepted { continue }
            nodes[node].belief = ServerBelief(node: nodes[node].name, requiresStandby: requiresStandby)
        }
    }

    // MARK: - What must hold

    /// What was granted is wherever a node may get it granted once more, and no node reads what may be lost.
    mutating func check() {
        for node in nodes.indices {
            var trial = self
            guard let index = trial.admit(node), trial.violations.count == violations.count else { continue }
            let server = trial.servers[index]
            if server.waits.contains(where: { $0.isVisible && $0.noticed.contains(nodes[node].name) }) {
                violations.append("\(nodes[node].name) reads what no standby has")
            }
            guard trial.proves(index), trial.nodes[node].belief.conflict.isEmpty else { continue }
            for thing in granted.keys where !unprotected.contains(thing) {
                if server.content.spent[thing] == nil { violations.append("\(thing) granted, and lost") }
            }
        }
    }
}
#endif

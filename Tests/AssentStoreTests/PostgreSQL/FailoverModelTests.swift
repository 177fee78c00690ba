#if PostgreSQL && os(Linux)
import AssentCore
import Testing

@testable import AssentStore

/// Servers, a link between them, and nodes as values; what decides is the product's own (``ServerChoice``,
/// ``NodeMemory``, ``CommitSearch``). Random walks look for a thing that is granted twice, or granted and lost.
@Suite("PostgreSQL: fail-over, as a model")
struct FailoverModelTests {
    /// What is on a server's disk.
    private struct Content {
        var generations: [DatabaseGeneration] = []
        var marks: [String: Int64] = [:]
        /// Which node has spent which thing.
        var spent: [Int: String] = [:]
    }

    private struct Server {
        var content = Content()
        /// What no standby has confirmed yet, in the order of its log. It is not visible unless the wait was cut short.
        var waiting: [(thing: Int, node: String, isVisible: Bool)] = []
        var isUp = true
        var isPrimary = false
        var timeline = 1
        var startedAt: Int64
        /// Whether its commits wait for a standby.
        var isReplicating = false
        /// Whether a commit of this run was confirmed.
        var isConfirmed = true

        var sighting: ServerSighting {
            ServerSighting(
                incarnation: .init(system: "s", timeline: "\(timeline)", startedAt: startedAt),
                generations: content.generations, marks: content.marks)
        }
    }

    private struct Node {
        let name: String
        var memory: NodeMemory?
        var current: ServerIncarnation?
        /// A thing whose COMMIT got no answer.
        var lost: Int?
        var search: CommitSearch.Step = .look
        /// Where it was looked for.
        var seenOn: ServerIncarnation?
    }

    private struct World {
        var servers: [Server]
        var nodes: [Node]
        var isLinked = true
        var now: Int64 = 10
        var granted: [Int: String] = [:]
        var violations: [String] = []
        var unknown: Set<Int> = []
        var counts: [String: Int] = [:]

        init() {
            servers = [Server(startedAt: 1), Server(startedAt: 2)]
            servers[0].isPrimary = true
            servers[0].isReplicating = true
            nodes = ["m", "n"].map { Node(name: $0) }
        }

        mutating func count(_ what: String) { counts[what, default: 0] += 1 }

        // MARK: - Servers

        /// The index of the standby that follows a server.
        private func standby(of index: Int) -> Int? {
            servers.indices.first { $0 != index && servers[$0].isUp && !servers[$0].isPrimary }
        }

        /// Whether a commit on this server is confirmed now.
        private func confirms(_ index: Int) -> Bool {
            guard servers[index].isUp, servers[index].isPrimary else { return false }
            if !servers[index].isReplicating { return true }
            return isLinked && standby(of: index) != nil
        }

        /// The standby has everything up to now.
        private mutating func replicate(_ index: Int) {
            for wait in servers[index].waiting { servers[index].content.spent[wait.thing] = wait.node }
            servers[index].waiting = []
            if servers[index].isReplicating, let standby = standby(of: index) {
                servers[standby].content = servers[index].content
            }
        }

        // MARK: - Moves of the world

        mutating func cutLink() { isLinked = false }

        mutating func mendLink() {
            isLinked = true
            for index in servers.indices where servers[index].isUp && confirms(index) { replicate(index) }
        }

        mutating func crash(_ index: Int) { servers[index].isUp = false }

        /// Recovery shows what was flushed here, and nobody else may have.
        mutating func start(_ index: Int) {
            guard !servers[index].isUp else { return }
            // What docs/scaling.md asks of the cluster manager: an old primary that waits for no standby stays down
            // until each node has seen the server that replaced it.
            let isOld = servers[index].isPrimary && servers[index].timeline < servers[1 - index].timeline
            if isOld, !servers[index].isReplicating, !nodes.allSatisfy({ knows($0, servers[1 - index]) }) { return }
            if isOld { count("old primary back") }
            now += 1
            servers[index].isUp = true
            servers[index].startedAt = now
            servers[index].isConfirmed = false
            for place in servers[index].waiting.indices { servers[index].waiting[place].isVisible = true }
        }

        private func knows(_ node: Node, _ server: Server) -> Bool {
            server.content.generations.last.map { $0.token == node.memory?.token } ?? false
                && !server.sighting.lacksGeneration
        }

        /// An administrator cancels the waits for the standby.
        mutating func cancelWaits(_ index: Int) {
            for place in servers[index].waiting.indices { servers[index].waiting[place].isVisible = true }
        }

        /// The standby takes over, as an administrator does it: the old primary is gone, or cut off.
        mutating func promote() {
            guard let index = servers.firstIndex(where: { $0.isUp && !$0.isPrimary }) else { return }
            guard !servers[1 - index].isUp || !isLinked else { return }
            now += 1
            servers[index].isPrimary = true
            servers[index].timeline = (servers.map(\.timeline).max() ?? 1) + 1
            count("promoted")
        }

        /// A server is made a standby of the other one again, by the right way: all of its content is replaced.
        mutating func rejoin(_ index: Int) {
            let other = 1 - index
            guard servers[other].isUp, servers[other].isPrimary, isLinked,
                servers[index].timeline < servers[other].timeline
            else { return }
            servers[index].isUp = true
            servers[index].isPrimary = false
            servers[index].waiting = []
            servers[index].content = servers[other].content
            servers[index].timeline = servers[other].timeline
            servers[other].isReplicating = true
            count("rejoined")
        }

        // MARK: - Moves of a node

        /// Opens a connection, as the product does: it looks at all servers when one is new to it.
        private mutating func admit(_ node: Int) -> Int? {
            let writable = servers.indices.filter { servers[$0].isUp && servers[$0].isPrimary }
            if let current = nodes[node].current,
                let index = writable.first(where: { servers[$0].sighting.incarnation == current })
            {
                return index
            }
            nodes[node].current = nil
            let choice = ServerChoice(writable.map { ($0, visible($0)) })
            guard case .host(let index, _) = choice else {
                if case .conflict = choice { count("conflict") }
                return nil
            }
            let sighting = visible(index)
            if let memory = nodes[node].memory, memory.judge(sighting, node: nodes[node].name) != .accepted {
                count("refused")
                return nil
            }
            guard servers[index].isConfirmed || confirms(index) else { return nil }
            servers[index].isConfirmed = true
            if confirms(index) { replicate(index) }
            if sighting.lacksGeneration {
                guard confirms(index) else { return nil }
                let number = Int64(sighting.generations.count + 1)
                servers[index].content.generations.append(
                    DatabaseGeneration(
                        number: number, token: "\(number)-\(index)-\(now)", system: "s",
                        timeline: "\(servers[index].timeline)", isRestored: false))
                replicate(index)
            }
            let latest = servers[index].content.generations.last
            nodes[node].memory = latest.map {
                NodeMemory(
                    generation: $0.number, token: $0.token, mark: servers[index].content.marks[nodes[node].name] ?? 0)
            }
            nodes[node].current = servers[index].sighting.incarnation
            return index
        }

        private func visible(_ index: Int) -> ServerSighting { servers[index].sighting }

        /// The watch: a server that lacks what another one has is used no more.
        mutating func watch(_ node: Int) {
            let writable = servers.indices.filter { servers[$0].isUp && servers[$0].isPrimary }
            if case .host(let index, _) = ServerChoice(writable.map { ($0, visible($0)) }),
                servers[index].sighting.incarnation != nodes[node].current
            {
                nodes[node].current = nil
            }
        }

        mutating func mark(_ node: Int) {
            guard let index = admit(node), confirms(index), var memory = nodes[node].memory else { return }
            memory.mark += 1
            servers[index].content.marks[nodes[node].name] = memory.mark
            replicate(index)
            nodes[node].memory = memory
        }

        mutating func restart(_ node: Int) {
            nodes[node].current = nil
            nodes[node].lost = nil
        }

        mutating func spend(_ thing: Int, _ node: Int) {
            guard nodes[node].lost == nil, let index = admit(node) else { return }
            let name = nodes[node].name
            // The row is taken, or locked by somebody who commits.
            guard servers[index].content.spent[thing] == nil,
                !servers[index].waiting.contains(where: { $0.thing == thing })
            else { return }
            servers[index].waiting.append((thing, name, false))
            if confirms(index) {
                replicate(index)
                grant(thing, node)
            } else {
                nodes[node].lost = thing
                nodes[node].search = .look
                count("silent")
            }
        }

        /// One step of finding out.
        mutating func ask(_ node: Int) {
            guard let thing = nodes[node].lost, let index = admit(node) else { return }
            let search = CommitSearch(requiresStandby: false)
            let name = nodes[node].name
            let wait = servers[index].waiting.first { $0.thing == thing && $0.node == name }
            if nodes[node].seenOn != servers[index].sighting.incarnation { nodes[node].search = search.lost() }
            nodes[node].seenOn = servers[index].sighting.incarnation
            switch nodes[node].search {
            case .look:
                let isThere = servers[index].content.spent[thing] == name || wait?.isVisible == true
                nodes[node].search =
                    if isThere {
                        search.found(.present(isReplicated: servers[index].isReplicating))
                    } else {
                        search.found(wait == nil ? .absent : .open)
                    }
            case .fence:
                let isConfirmed = confirms(index)
                if isConfirmed { replicate(index) }
                nodes[node].search = search.fenced(isConfirmed: isConfirmed)
            case .end: break
            }
            guard case .end(let outcome) = nodes[node].search else { return }
            nodes[node].lost = nil
            nodes[node].search = .look
            switch outcome {
            case .committed: grant(thing, node)
            case .takenBack: count("taken back")
            case .unknown:
                unknown.insert(thing)
                count("unknown")
            }
        }

        private mutating func grant(_ thing: Int, _ node: Int) {
            if let first = granted[thing] {
                violations.append("\(thing) granted to \(first), and to \(nodes[node].name)")
            }
            granted[thing] = nodes[node].name
            count("granted")
        }

        /// Whether a node would use a server, and get something granted there.
        private func mayGrant(_ index: Int, to node: Int) -> Bool {
            guard confirms(index), let memory = nodes[node].memory else { return false }
            if let current = nodes[node].current { return current == servers[index].sighting.incarnation }
            let writable = servers.indices.filter { servers[$0].isUp && servers[$0].isPrimary }
            guard case .host(index, _) = ServerChoice(writable.map { ($0, servers[$0].sighting) }) else { return false }
            return memory.judge(servers[index].sighting, node: nodes[node].name) == .accepted
        }

        /// What was granted is wherever a node may get it granted once more.
        mutating func check() {
            for index in servers.indices where nodes.indices.contains(where: { mayGrant(index, to: $0) }) {
                for thing in granted.keys where servers[index].content.spent[thing] == nil {
                    violations.append("\(thing) granted, and lost")
                }
            }
        }
    }

    /// A walk of so many moves. Both nodes have used the database before it begins.
    private static func walk(seed: UInt64, moves: Int) -> World {
        var random = seed
        func roll(_ count: Int) -> Int {
            random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int((random >> 33) % UInt64(count))
        }
        var world = World()
        for node in 0..<2 {
            world.spend(-1 - node, node)
            world.mark(node)
        }
        var trace: [String] = []
        for thing in 0..<moves {
            let node = roll(2)
            let server = roll(2)
            let move = roll(24)
            trace.append("\(move)/\(node)\(server)")
            switch move {
            case 0: world.cutLink()
            case 1, 2: world.mendLink()
            case 3: world.crash(server)
            case 4, 5: world.start(server)
            case 6: world.promote()
            case 7: world.rejoin(server)
            case 8: world.cancelWaits(server)
            case 9: world.restart(node)
            case 10, 11: world.watch(node)
            case 12: world.mark(node)
            case 13...17: world.ask(node)
            // A thing that was tried lately, or a new one.
            default: world.spend(thing / 4, node)
            }
            world.check()
            if !world.violations.isEmpty {
                world.violations.append("seed \(seed): \(trace.suffix(12).joined(separator: " "))")
                break
            }
        }
        return world
    }

    @Test("A hundred thousand random moves grant nothing twice and lose nothing that was granted")
    func random() {
        var counts: [String: Int] = [:]
        for seed in 0..<1_000 {
            let world = Self.walk(seed: UInt64(seed), moves: 100)
            #expect(world.violations.isEmpty)
            if !world.violations.isEmpty { return }
            counts.merge(world.counts, uniquingKeysWith: +)
        }
        // Each thing that can become of a call was met.
        for what in [
            "granted", "silent", "taken back", "unknown", "promoted", "rejoined", "old primary back", "conflict",
            "refused",
        ] {
            #expect(counts[what, default: 0] > 5, "\(what): \(counts)")
        }
    }
}
#endif

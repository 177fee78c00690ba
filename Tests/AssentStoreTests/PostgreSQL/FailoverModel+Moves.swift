#if PostgreSQL && os(Linux)
@testable import AssentStore

extension FailoverModel {
    // MARK: - Servers

    mutating func mendLink() {
        isLinked = true
        for index in servers.indices where confirms(index) { replicate(index) }
    }

    mutating func crash(_ index: Int) {
        guard servers[index].isUp else { return }
        servers[index].isUp = false
        cut(index)
    }

    /// Recovery shows what was flushed here, and nobody else may have. It is the same after a crash of one process.
    ///
    /// An old primary whose commits wait for nobody stays down until each node knows the server that replaced it.
    mutating func start(_ index: Int) {
        guard !servers[index].isUp, index != Self.copyPlace else { return }
        if isOld(index) {
            if !servers[index].isReplicating, !nodes.allSatisfy({ knows($0, newest) }) { return }
            count("old primary back")
        }
        now += 1
        servers[index].isUp = true
        servers[index].startedAt = now
        for place in servers[index].waits.indices {
            servers[index].waits[place].isVisible = true
            servers[index].waits[place].noticed = Set(nodes.map(\.name))
        }
        if confirms(index) { replicate(index) }
        // A standby catches up.
        if let primary = servers[index].follows, isLinked, confirms(primary) { replicate(primary) }
    }

    /// The primary that took over last.
    private var newest: Int? {
        let primaries = servers.indices.filter { $0 != Self.copyPlace && servers[$0].isPrimary }
        return primaries.max {
            let (first, second) = (servers[$0], servers[$1])
            return (first.timeline, first.content.generations.count)
                < (second.timeline, second.content.generations.count)
        }
    }

    private func isOld(_ index: Int) -> Bool { servers[index].isPrimary && index != newest }

    private func knows(_ node: Node, _ index: Int?) -> Bool {
        guard let index, let latest = servers[index].content.generations.last else { return false }
        return latest.token == node.belief.memory?.token && !servers[index].sighting.lacksGeneration
    }

    /// An administrator cancels the waits for the standby.
    mutating func cancelWaits(_ index: Int) { if servers[index].isUp { cut(index) } }

    /// Only where the commits of the one that took over last wait: an old primary keeps its names.
    mutating func emptyNames() {
        guard let index = newest, servers[index].isUp, servers[index].isReplicating,
            servers.contains(where: { $0.follows == index })
        else { return }
        count("names emptied")
        servers[index].isReplicating = false
        replicate(index)
    }

    mutating func setNames() {
        guard let index = newest, servers.contains(where: { $0.follows == index }) else { return }
        servers[index].isReplicating = true
        if confirms(index) { replicate(index) }
    }

    /// The standby that has most takes over. Both were asked, and have left the old primary; that one is down, or waits
    /// for them.
    mutating func promote(_ index: Int) {
        guard !isUnfenced, servers[index].isUp, let old = servers[index].follows, !servers[old].isUp || !isLinked else {
            return
        }
        guard servers[old].isReplicating || !servers[old].isUp else { return }
        let standbys = servers.indices.filter { servers[$0].follows == old }
        guard standbys.allSatisfy({ servers[$0].isUp && servers[$0].content.place <= servers[index].content.place })
        else { return }
        for other in standbys { servers[other].follows = nil }
        count("promoted")
        lead(index)
    }

    /// The other standby is promoted as well, by mistake: once each node knows the first one.
    mutating func promoteSecond(_ index: Int) {
        guard servers[index].isUp, !servers[index].isPrimary, servers[index].follows == nil,
            nodes.allSatisfy({ knows($0, newest) })
        else { return }
        count("two promoted")
        lead(index)
    }

    private mutating func lead(_ index: Int) {
        servers[index].isPrimary = true
        servers[index].isReplicating = false
        servers[index].timeline = (servers[index].timeline) + 1
    }

    /// A server is made a standby of the newest one, by the right way: all of its content is replaced.
    mutating func rejoin(_ index: Int) {
        guard let primary = newest, primary != index, index != Self.copyPlace, servers[primary].isUp, isLinked,
            servers[index].follows != primary, !servers[index].isPrimary || isOld(index)
        else { return }
        servers[index] = Server(content: servers[primary].content, startedAt: servers[index].startedAt)
        servers[index].follows = primary
        servers[index].timeline = servers[primary].timeline
        servers[primary].isReplicating = true
        if confirms(primary) { replicate(primary) }
        count("rejoined")
    }

    // MARK: - Backups and copies

    mutating func takeSnapshot() {
        guard let index = newest, servers[index].isUp else { return }
        snapshot = (servers[index].content, servers[index].timeline)
    }

    /// A copy of the disk is started by itself, once each node has written since.
    mutating func startCopy() {
        guard let snapshot, !servers[Self.copyPlace].isUp else { return }
        now += 1
        var copy = Server(content: snapshot.content, startedAt: now)
        copy.isPrimary = true
        copy.timeline = snapshot.timeline
        guard isRefused(copy.sighting) else { return }
        servers[Self.copyPlace] = copy
        count("copied")
    }

    mutating func stopCopy() { servers[Self.copyPlace] = Server(isUp: false, startedAt: 0) }

    private func isRefused(_ sighting: ServerSighting) -> Bool {
        nodes.allSatisfy { node in
            guard let memory = node.belief.memory else { return false }
            return [.copy, .otherHistory].contains(memory.judge(sighting, node: node.name))
        }
    }

    /// A backup is restored beneath the nodes; `assent restore-fence` comes later, and before anything else is done to
    /// the servers.
    mutating func restore() {
        guard let snapshot, let index = newest, servers[index].isUp, primaries == 1, isLinked else { return }
        var restored = servers[index]
        restored.content = snapshot.content
        restored.waits = []
        guard isRefused(restored.sighting) else { return }
        cut(index)
        servers[index] = restored
        isUnfenced = true
        for standby in standbys(of: index) { servers[standby].content = restored.content }
        count("restored")
    }

    mutating func fence() {
        guard isUnfenced, let index = newest, confirms(index) else { return }
        isUnfenced = false
        for node in nodes.indices { restart(node) }
        fenceRestored(index)
    }

    private var primaries: Int { servers.count(where: \.isPrimary) }

    // MARK: - Nodes

    /// A node loses its data directory, while there is one primary, up or down.
    mutating func forget(_ node: Int) {
        guard primaries == 1, !isUnfenced else { return }
        restart(node)
        nodes[node].belief = ServerBelief(node: nodes[node].name, requiresStandby: requiresStandby)
        count("forgotten")
    }

    mutating func restart(_ node: Int) {
        let belief = nodes[node].belief
        nodes[node] = Node(
            name: nodes[node].name,
            belief: ServerBelief(node: belief.node, requiresStandby: requiresStandby, memory: belief.memory),
            reach: nodes[node].reach)
    }

    /// A node reaches one server alone, or all of them again.
    mutating func reach(_ node: Int, _ server: Int) {
        nodes[node].reach = nodes[node].reach.count > 1 ? [server] : Set(servers.indices)
    }

    /// What the product does every few seconds.
    mutating func watch(_ node: Int) {
        let writable = nodes[node].reach.sorted().filter { servers[$0].isUp && servers[$0].isPrimary }
        let choice = ServerChoice(writable.map { ($0, servers[$0].sighting) })
        let chosen: ServerIncarnation? =
            if case .host(let index, _) = choice { servers[index].sighting.incarnation } else { nil }
        nodes[node].belief.see(choice, chosen: chosen)
    }

    mutating func mark(_ node: Int) {
        guard let index = admit(node), confirms(index), let memory = nodes[node].belief.memory else { return }
        servers[index].content.marks[nodes[node].name] = memory.mark + 1
        replicate(index)
        _ = nodes[node].belief.acknowledge(
            mark: memory.mark + 1, of: memory.generation, by: servers[index].sighting.incarnation)
    }

    mutating func spend(_ thing: Int, _ node: Int) {
        guard nodes[node].lost == nil, nodes[node].pending == nil, let index = admit(node),
            nodes[node].belief.conflict.isEmpty, servers[index].isReplicating || !requiresStandby
        else { return }
        // The row is taken, or locked by somebody who commits.
        guard servers[index].content.spent[thing] == nil, !servers[index].waits.contains(where: { $0.thing == thing })
        else { return }
        servers[index].waits.append(Wait(thing: thing, node: nodes[node].name))
        nodes[node].pending = (thing, index)
        if confirms(index) { replicate(index) } else { count("silent") }
    }

    /// A COMMIT has waited too long: the connection is given up.
    mutating func giveUp(_ node: Int) {
        guard let (thing, _) = nodes[node].pending else { return }
        nodes[node].pending = nil
        lose(node, thing)
    }

    /// One step of finding out.
    mutating func ask(_ node: Int) {
        guard let thing = nodes[node].lost, let index = admit(node), nodes[node].lost != nil else { return }
        let search = CommitSearch(requiresStandby: requiresStandby)
        let incarnation = servers[index].sighting.incarnation
        if nodes[node].seenOn != incarnation { nodes[node].search = search.lost() }
        nodes[node].seenOn = incarnation
        switch nodes[node].search {
        case .look:
            let wait = servers[index].waits.first { $0.thing == thing && $0.node == nodes[node].name }
            let isThere = servers[index].content.spent[thing] == nodes[node].name || wait?.isVisible == true
            nodes[node].search = search.found(
                isThere
                    ? .present(isReplicated: servers[index].isReplicating) : wait == nil ? .absent : .open)
        case .fence:
            let isConfirmed = proves(index)
            if isConfirmed { replicate(index) }
            nodes[node].search = search.fenced(isConfirmed: isConfirmed)
        case .end: break
        }
        guard case .end(let outcome) = nodes[node].search else { return }
        nodes[node].lost = nil
        nodes[node].search = .look
        switch outcome {
        case .committed: grant(thing, node, on: index)
        case .takenBack: count("taken back")
        case .unknown:
            notice(thing, node, on: index)
            nodes[node].passed.remove(incarnation)
            count("unknown")
        }
    }
}
#endif

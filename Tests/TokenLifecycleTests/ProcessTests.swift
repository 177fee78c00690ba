import AssentCore
import AssentTokens
import AssentVault
import TestSupport
import Testing
import TokenTableSupport

/// A provider, and a vault that several processes share. There is no session in it that could help over a lost token.
private struct SharedVault: Sendable {
    let assent: AssentWorld?
    let scripted: ScriptedProvider?
    let world: ProviderWorld
    let directory: TemporaryVault
    let store: FileVault

    var records: StoredRecords { StoredRecords(store) }

    init(isAssent: Bool) async throws {
        if isAssent {
            let made = try await AssentWorld()
            (assent, scripted, world) = (made, nil, made.world)
        } else {
            let made = try await ScriptedProvider.world()
            (assent, world, scripted) = (nil, made.0, made.1)
        }
        directory = try TemporaryVault()
        store = try await directory.open()
        try await signIn()
    }

    func signIn() async throws {
        let manager = try world.manager(store)
        try await manager.install(world.sessions.mine)
        _ = try await manager.tokens()
        try await records.remove("session.")
    }

    func agent(patience: Int = Patience.seconds) throws -> AgentProcess {
        try AgentProcess(world, vault: directory, patience: patience)
    }

    /// What an agent answers that hands out the stored token.
    func good() async throws -> String {
        let token = try #require(try await records.accessToken())
        return "ok \(Base64URL.encode(SHA2.sha256(token.utf8)))"
    }

    /// Refresh tokens that the provider would still take.
    func liveRefreshTokens() async throws -> Int {
        if let assent { return try await assent.liveRefreshTokens() }
        return try #require(scripted).liveRefreshTokens
    }

    func stop() async {
        await world.relay.stop()
        await assent?.stop()
    }
}

@Suite("Several processes with one vault")
struct ProcessTests {
    @Test("A thousand tasks in eight processes with a token that is over make one request", arguments: [true, false])
    func eight(isAssent: Bool) async throws {
        let shared = try await SharedVault(isAssent: isAssent)
        let agents = try (0..<8).map { _ in try shared.agent() }
        for agent in agents { #expect(await agent.ask("metadata") == "ok") }
        for _ in 0..<3 {
            try await shared.records.expire()
            try await shared.world.relay.reset()
            for agent in agents { agent.tell("crowd") }
            var answers: [String?] = []
            for agent in agents { answers.append(await agent.answer()) }
            #expect(shared.world.relay.state.value.requests == [.refresh])
            let good = try await shared.good()
            #expect(answers == Array(repeating: good, count: 8))
            #expect(try await shared.liveRefreshTokens() == 1)
        }
        for agent in agents { agent.kill() }
        await shared.stop()
    }

    @Test("While the one who renews is stopped, the others wait as long as they should, and send nothing")
    func stopped() async throws {
        let shared = try await SharedVault(isAssent: true)
        let relay = shared.world.relay
        let holder = try shared.agent()
        let others = try (0..<7).map { _ in try shared.agent(patience: 1) }
        for agent in others + [holder] { #expect(await agent.ask("metadata") == "ok") }
        try await shared.records.expire()
        try await relay.reset()
        relay.state.update { $0.faults[.refresh] = .holdReply }
        holder.tell("tokens")
        await relay.state.wait { $0.answered == [.refresh] }
        try await holder.stop()
        relay.state.update { $0.faults = [:] }
        relay.release()
        for agent in others { agent.tell("crowd") }
        for agent in others { #expect(await agent.answer() == "error busy -") }
        #expect(relay.state.value.requests == [.refresh])
        holder.goOn()
        let answer = await holder.answer()
        #expect(try await answer == shared.good())
        for agent in others { #expect(try await agent.ask("crowd") == shared.good()) }
        #expect(relay.state.value.requests == [.refresh])
        for agent in others + [holder] { agent.kill() }
        await shared.stop()
    }

    /// When the process dies that was first to want a token.
    private enum Death: CaseIterable {
        case beforeTheServerHasIt
        case beforeTheReply
        case whileStoring
        case anytime
    }

    @Test(
        "A process is killed while it renews, again and again: the other one has the token", arguments: [true, false])
    func killed(isAssent: Bool) async throws {
        let rounds = Soak.isOn ? 200 : 60
        let shared = try await SharedVault(isAssent: isAssent)
        let relay = shared.world.relay
        var agents = try (0..<3).map { _ in try shared.agent() }
        var (signIns, unanswered) = (0, 0)
        for round in 0..<rounds {
            let (victim, witness) = (agents[0], agents[1])
            try await relay.reset()
            try await shared.records.expire()
            let before = try await shared.records.accessToken()
            switch Death.allCases[round % Death.allCases.count] {
            case .beforeTheServerHasIt:
                relay.state.update { $0.faults[.refresh] = .holdRequest }
                victim.tell("tokens")
                await relay.state.wait { $0.requests == [.refresh] }
                relay.state.update { $0.faults = [:] }
                witness.tell("tokens")
            case .beforeTheReply:
                relay.state.update { $0.faults[.refresh] = .swallowReply }
                victim.tell("tokens")
                await relay.state.wait { $0.answered == [.refresh] }
                relay.state.update { $0.faults = [:] }
                witness.tell("tokens")
            case .whileStoring:
                relay.state.update { $0.faults[.refresh] = .holdReply }
                victim.tell("tokens")
                await relay.state.wait { $0.answered == [.refresh] }
                relay.state.update { $0.faults = [:] }
                witness.tell("tokens")
                relay.release()
                for _ in 0..<(round * 7 % 200) { await Task.yield() }
            case .anytime:
                victim.tell("tokens")
                witness.tell("tokens")
                for _ in 0..<(round * 37 % 4000) { await Task.yield() }
            }
            victim.kill()
            agents = [agents[1], agents[2], try shared.agent()]

            let answer = await witness.answer()
            let answered = relay.state.value.answered.count
            if answered > 1 || answer?.hasPrefix("error") == true { unanswered += 1 }
            if !isAssent, answer == "error signInNeeded refreshInterrupted" {
                #expect(answered >= 1, "nothing had been interrupted")
                signIns += 1
                try await shared.signIn()
            } else {
                #expect(try await answer == shared.good(), "round \(round)")
                #expect(try await shared.records.accessToken() != before)
            }
            #expect(try await shared.liveRefreshTokens() == 1, "round \(round)")
        }
        // What was tried has happened: answers were lost, and only elsewhere that costs a sign-in.
        #expect(unanswered >= rounds / 4)
        #expect(isAssent ? signIns == 0 : signIns >= rounds / 4)
        if let assent = shared.assent { #expect(try await assent.liveGrants() == 1) }
        for agent in agents { agent.kill() }
        await shared.stop()
    }
}

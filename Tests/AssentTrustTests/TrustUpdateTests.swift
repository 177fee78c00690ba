import AssentCore
import Foundation
import Testing

@testable import AssentTrust

@Suite("The update of a trust file goes forward, one version at a time")
struct TrustUpdateTests {
    private let samples: TrustSamples
    private let now = TrustSamples.time + 100

    init() throws { samples = try TrustSamples() }

    private static let nine = ReachedVersion(audience: "bank-app/linux/production", version: 9)

    private enum Move: String, CaseIterable {
        case loadedNothing, loadedOlder, loadedNewer, loadedBehind, due, next, gap, absent, failed, kept, passed
    }

    /// What each event does in each state, as `state: action`; a dot where it changes nothing.
    private static let table: [TrustUpdate.State: [Move: String]] = [
        .shipped: [
            .loadedNewer: "stored: use 7", .loadedBehind: "refused: use 5", .due: "asked: ask 6",
        ],
        .stored: [
            .loadedNewer: "stored: use 7", .loadedBehind: "refused: use 6", .due: "asked: ask 7",
        ],
        .asked: [
            .next: "asked: ask 7", .gap: "asked: ask 6", .absent: "asked: ask 6", .failed: "asked: ask 6",
        ],
        .verified: [.kept: "stored: use 6"],
        .refused: [
            .loadedNewer: "stored: use 7", .loadedBehind: "refused: use 5", .due: "asked: ask 6",
        ],
        .expired: [
            .loadedNewer: "stored: use 7", .loadedBehind: "refused: use 5", .due: "asked: ask 6",
        ],
    ]

    private func machine(in state: TrustUpdate.State) async throws -> TrustUpdate {
        let sources: JSONValue = ["https://a.example", "https://b.example"]
        let changes: [String: JSONValue?] =
            state == .expired ? ["source": sources, "exp": .integer(now)] : ["source": sources]
        var update = TrustUpdate(shipped: try TrustFile(shipped: try await samples.file(5, changes)))
        let six = try await samples.file(6, ["source": sources])
        switch state {
        case .shipped: break
        case .stored: _ = update.on(.loaded(six), at: now)
        case .asked: _ = update.on(.due, at: now)
        case .verified:
            _ = update.on(.due, at: now)
            _ = update.on(.answered(.file(six)), at: now)
            _ = update.on(.answered(.absent), at: now)
            _ = update.on(.answered(.absent), at: now)
        case .refused:
            _ = update.on(.due, at: now)
            _ = update.on(.answered(.failed), at: now)
            _ = update.on(.answered(.file("no file")), at: now)
        case .expired: _ = update.on(.passed, at: now)
        }
        #expect(update.state == state)
        return update
    }

    private func event(_ move: Move) async throws -> TrustUpdate.Event {
        switch move {
        case .loadedNothing: .loaded(nil)
        case .loadedOlder: .loaded(try await samples.file(4))
        case .loadedNewer: .loaded(try await samples.file(7))
        case .loadedBehind: .loaded("no file", reached: Self.nine)
        case .due: .due
        case .next: .answered(.file(try await samples.file(6)))
        case .gap: .answered(.file(try await samples.file(9)))
        case .absent: .answered(.absent)
        case .failed: .answered(.failed)
        case .kept: .kept
        case .passed: .passed
        }
    }

    private func words(_ action: TrustUpdate.Action) -> String {
        switch action {
        case .nothing: "."
        case .ask(let url): "ask \(url.split(separator: "/").last ?? "")"
        case .keep(let file): "keep \(file.version)"
        case .use(let file): "use \(file.version)"
        case .rest: "rest"
        }
    }

    @Test("Each event in each state", arguments: TrustUpdate.State.allCases)
    func everything(state: TrustUpdate.State) async throws {
        for move in Move.allCases {
            var update = try await machine(in: state)
            let before = update.current
            let action = update.on(try await event(move), at: now)
            let wanted = Self.table[state]?[move]
            if let wanted {
                #expect("\(update.state): \(words(action))" == wanted, "\(state) \(move)")
            } else {
                #expect(update.state == state && action == .nothing && update.current == before, "\(state) \(move)")
            }
        }
    }

    @Test("A round asks each source in turn, goes on where one has more, and keeps the newest")
    func sources() async throws {
        var update = try await machine(in: .asked)
        #expect(update.on(.answered(.failed), at: now) == .ask("https://b.example/6"))
        let six = try await samples.file(6)
        #expect(update.on(.answered(.file(six)), at: now) == .ask("https://b.example/7"))
        let seven = try await samples.file(7)
        #expect(update.on(.answered(.file(seven)), at: now) == .ask("https://b.example/8"))
        #expect(update.current.version == 5, "nothing is in force before it is kept")
        let action = update.on(.answered(.absent), at: now)
        #expect(action == .keep(try TrustFile(shipped: seven)))
        #expect(update.on(.kept, at: now) == .use(try TrustFile(shipped: seven)))
        #expect(update.current.version == 7 && update.state == .stored)
    }

    @Test("34: of 17 new versions one round takes 16, and the next round the last")
    func steps() async throws {
        var update = TrustUpdate(shipped: try TrustFile(shipped: try await samples.file(1)))
        let files = try await samples.chain(2...18)
        var action = update.on(.due, at: now)
        for version in 2...17 {
            #expect(action == .ask("https://trust.bank.example/app/\(version)"))
            action = update.on(.answered(.file(files[version] ?? "")), at: now)
        }
        #expect(words(action) == "keep 17")
        _ = update.on(.kept, at: now)
        #expect(update.on(.due, at: now) == .ask("https://trust.bank.example/app/18"))
        _ = update.on(.answered(.file(files[18] ?? "")), at: now)
        #expect(words(update.on(.answered(.absent), at: now)) == "keep 18")
    }

    @Test("A file without sources is never asked about")
    func noSource() async throws {
        var update = TrustUpdate(shipped: try TrustFile(shipped: try await samples.file(1, ["source": []])))
        #expect(update.on(.due, at: now) == .nothing && update.state == .shipped)
    }

    @Test("What the vault has counts only when it is newer and for the same app")
    func stored() async throws {
        var foreign = try await machine(in: .shipped)
        let other = try await samples.file(9, ["aud": "bank-app/linux/test"])
        #expect(foreign.on(.loaded(other), at: now) == .nothing && foreign.current.version == 5)
        let reached = ReachedVersion(audience: "bank-app/linux/test", version: 9)
        #expect(foreign.on(.loaded("no file", reached: reached), at: now) == .nothing && !foreign.isBehind)
    }

    @Test("Nothing is in force below a version that was, until the sources, the vault or a release lead to it again")
    func behind() async throws {
        for number in [9, 10] {
            var released = TrustUpdate(shipped: try TrustFile(shipped: try await samples.file(number)))
            #expect(released.on(.loaded("no file", reached: Self.nine), at: now) == .nothing && !released.isBehind)
        }
        var update = TrustUpdate(shipped: try TrustFile(shipped: try await samples.file(5)))
        _ = update.on(.loaded("no file", reached: Self.nine), at: now)
        #expect(update.isBehind)
        var action = update.on(.due, at: now)
        for version in 6...8 { action = update.on(.answered(.file(try await samples.file(version))), at: now) }
        #expect(words(action) == "ask 9")
        #expect(words(update.on(.answered(.failed), at: now)) == "keep 8")
        #expect(words(update.on(.kept, at: now)) == "use 8" && update.isBehind && update.state == .refused)
        _ = update.on(.due, at: now)
        _ = update.on(.answered(.file(try await samples.file(9))), at: now)
        _ = update.on(.answered(.absent), at: now)
        #expect(words(update.on(.kept, at: now)) == "use 9" && !update.isBehind && update.state == .stored)
        var restored = TrustUpdate(shipped: try TrustFile(shipped: try await samples.file(5)))
        _ = restored.on(.loaded(nil, reached: Self.nine), at: now)
        let newest = try await samples.file(9)
        #expect(words(restored.on(.loaded(newest, reached: Self.nine), at: now)) == "use 9" && !restored.isBehind)
    }

    @Test("A file expires with time, and a clock that was ahead and is put right brings it back")
    func expiry() async throws {
        let file = try TrustFile(shipped: try await samples.file(1, ["exp": .integer(now + 10)]))
        var update = TrustUpdate(shipped: file)
        #expect(update.on(.passed, at: now) == .nothing)
        #expect(update.on(.passed, at: now + 10) == .use(file) && update.state == .expired)
        #expect(update.on(.passed, at: now + 11) == .nothing)
        #expect(update.on(.passed, at: now) == .use(file) && update.state == .shipped)
    }
}

package import AssentCore
package import AssentSigningProtocol
package import AssentTokens
package import Foundation
import HTTPTypes
import Logging

/// Keeps an app's trust file: takes the newest one out of the vault, asks the sources for later ones, and says what is
/// in force. ``TrustUpdate`` decides; this reads, asks and stores.
///
/// Of all processes that share the vault, one asks at a time, under the vault's lease, and the others take what it has
/// found.
package actor TrustKeeper {
    /// Seconds between two rounds of questions while all goes well.
    package static let usualInterval = 24 * 3600

    /// Seconds between two rounds when a process starts, and when a pin has failed or ended.
    package static let urgentInterval = 3600

    /// How many seconds a process waits for another one that asks.
    private static let patience: TimeInterval = 60

    /// The file in force, for those who cannot wait.
    package nonisolated let inForce: TrustInForce

    private let surroundings: KeeperSurroundings
    /// Of the record in the vault.
    private let recordName: String
    private let apply: @Sendable ([String: PinRequirement]) -> Void
    private var update: TrustUpdate
    private var isLoaded = false
    private var loading: Task<Void, any Error>?
    private var asking: Task<Void, Never>?
    private var record = TrustRecord()
    private var hasAsked = false
    /// What counted as now when the pins were applied, and when the first of them ends after that.
    private var applied: (at: Int, nextEnd: Int?)

    /// - Parameters:
    ///   - shipped: the file that is a part of the app.
    ///   - surroundings: vault, clock, and the way to the sources, which has no pins.
    ///   - apply: gets the valid pins each time that they change.
    package init(
        shipped: TrustFile, in surroundings: KeeperSurroundings,
        apply: @escaping @Sendable ([String: PinRequirement]) -> Void
    ) {
        self.surroundings = surroundings
        self.apply = apply
        recordName = TrustRecord.name(for: shipped.audience)
        update = TrustUpdate(shipped: shipped)
        inForce = TrustInForce(shipped)
        let now = shipped.now(surroundings.clock.now)
        applied = (now, shipped.nextEnd(after: now))
    }

    /// Where the update stands.
    package var state: TrustUpdate.State { update.state }

    /// Waits until the vault was read, and for an update if nothing that is in force lets `origin` be called.
    ///
    /// - Parameters:
    ///   - origin: where a call goes.
    ///   - deadline: until when an update is waited for; it goes on after that. `nil`: until its end.
    /// - Throws: `HTTPTransportError` with code `trustExpired`; `timedOut` at the deadline; `cancelled`.
    package func prepare(_ origin: Origin, until deadline: Date? = nil) async throws(HTTPTransportError) {
        try await load()
        pass()
        if isDue(hasAsked ? Self.usualInterval : Self.urgentInterval) { begin() }
        guard !isUsable(origin) else { return }
        let isOver = await wait(until: deadline)
        guard !isUsable(origin) else { return }
        guard isOver else { throw KeeperSurroundings.unfinished("The sources of the trust file") }
        throw expired(origin)
    }

    /// Asks, and waits for it until a time.
    ///
    /// - Returns: whether the round was over by then.
    private func wait(until deadline: Date?) async -> Bool {
        await surroundings.isOver(Task { await ask() }, by: deadline)
    }

    /// Waits until the vault was read: what is in force before may give a credential that a later file took away.
    ///
    /// - Throws: `HTTPTransportError` with code `trustExpired`.
    package func settle() async throws(HTTPTransportError) { try await load() }

    /// A server has shown none of its pinned keys. When this returns, a later file is in force if there is one; the
    /// call stays failed.
    ///
    /// - Parameter deadline: until when that is waited for; it goes on after that.
    package func pinFailed(until deadline: Date? = nil) async { _ = await wait(until: deadline) }

    /// Until when a call that begins now may wait.
    package nonisolated func deadline(of call: HTTPCall) -> Date { surroundings.deadline(of: call) }

    /// Asks the sources, unless they were asked within the last hour by any process.
    ///
    /// - Returns: the version in force.
    @discardableResult
    package func ask() async -> Int {
        do {
            try await load()
        } catch {
            return update.current.version
        }
        begin()
        await asking?.value
        return update.current.version
    }

    /// Begins a round, unless one is under way or it is too early. Known at once to ``finish()``, which may have more
    /// priority than the call that needs the round.
    private func begin() {
        if asking == nil, mayAsk {
            asking = Task { await round() }
        }
    }

    /// Waits until nothing is asked any more.
    package func finish() async { await asking?.value }

    // MARK: - Steps

    private var now: Int { update.current.now(surroundings.clock.now) }

    /// The device's own clock tells when to ask: it is not about what is valid.
    private func isDue(_ interval: Int) -> Bool {
        !update.current.content.source.isEmpty
            && record.isDue(at: surroundings.clock.now.wholeSeconds, after: interval)
    }

    /// Nothing is called while a later version is missing, so a process that has just started does not wait for it.
    private var mayAsk: Bool { isDue(Self.urgentInterval) || update.isBehind && !hasAsked && isDue(0) }

    private func load() async throws(HTTPTransportError) {
        guard !isLoaded else { return }
        let task = loading ?? Task { try await self.read() }
        loading = task
        do {
            try await task.value
        } catch {
            loading = nil
            throw HTTPTransportError(
                .trustExpired,
                "The vault, which may have a newer trust file, cannot be read: \(error.explanationOrType)",
                suggestion: "Make the vault readable, and call again.")
        }
    }

    private func read() async throws {
        try await reload()
        isLoaded = true
        inForce.settled()
    }

    /// Takes what the vault has, also what another process has put there.
    private func reload() async throws {
        if let secret = try await surroundings.store.value(recordName)?.value {
            if let stored = TrustRecord(secret) {
                record = stored
            } else {
                // Who can write this into the vault could as well have removed the record.
                surroundings.logger.warning("the vault's record of the trust file cannot be read, and is written anew")
            }
        }
        perform(update.on(.loaded(record.file, reached: record.reached), at: now))
        if update.isBehind {
            surroundings.logger.warning("the vault's trust file is behind the version that was in force")
        }
    }

    private func round() async {
        defer { asking = nil }
        await surroundings.update("the trust file", under: recordName, patience: Self.patience) {
            try await reload()
            guard mayAsk else { return }
            await walk()
        }
        // Also after a failure: one that lasts must not be tried again with each call.
        record.asked = surroundings.clock.now.wholeSeconds
        hasAsked = true
    }

    private func walk() async {
        record.asked = surroundings.clock.now.wholeSeconds
        var action = update.on(.due, at: now)
        while true {
            switch action {
            case .ask(let url): action = update.on(.answered(await answer(url)), at: now)
            case .keep(let file):
                record.file = file.compact
                if file.version > update.reached {
                    record.reached = ReachedVersion(audience: file.audience, version: file.version)
                }
                await store()
                action = update.on(.kept, at: now)
            case .use:
                perform(action)
                return
            case .rest(let refusal):
                if let refusal {
                    surroundings.logger.warning("a trust file was refused", metadata: ["reason": "\(refusal)"])
                }
                // What cannot be read here is left to a release that can.
                if !update.isBehind { (record.file, record.reached) = (update.kept?.compact, reached) }
                await store()
                return
            case .nothing: return
            }
        }
    }

    private func store() async { await surroundings.keep(record.secret, as: recordName, of: "the trust file") }

    private func answer(_ url: String) async -> TrustAnswer {
        let limits = HTTPLimits(
            connect: .seconds(5), read: .seconds(5), total: .seconds(10), replyBytes: TrustFile.limit)
        do {
            let reply = try await surroundings.network.send(HTTPCall(.get, url: url, limits: limits))
            guard reply.status == 200 else { return reply.status == 404 ? .absent : .failed }
            let bytes = try await reply.body.collect(upTo: TrustFile.limit)
            return String(validating: bytes, as: UTF8.self).map(TrustAnswer.file) ?? .failed
        } catch {
            surroundings.logger.info(
                "a source of trust files did not answer", metadata: ["reason": "\(error.explanationOrType)"])
            return .failed
        }
    }

    /// What the vault must remember, also when a release ships that version: an older release may come back.
    private var reached: ReachedVersion? {
        update.reached > 0 ? ReachedVersion(audience: update.current.audience, version: update.reached) : nil
    }

    // MARK: - In force

    private func pass() {
        perform(update.on(.passed, at: now))
        // Also when a clock that was ahead is put right: pins that seemed to have ended are valid again.
        if now < applied.at || applied.nextEnd.map({ now >= $0 }) == true { perform(.use(update.current)) }
    }

    private func perform(_ action: TrustUpdate.Action) {
        guard case .use(let file) = action else { return }
        inForce.set(update.isBehind ? nil : file)
        applied = (now, file.nextEnd(after: now))
        apply(update.isBehind ? [:] : file.pins(at: now))
    }

    /// Whether nothing has ended that `origin` needs. A host that the file does not name is refused below.
    private func isUsable(_ origin: Origin) -> Bool {
        guard !update.isBehind, !update.current.hasExpired(at: now) else { return false }
        return update.current.host(of: origin).map { !$0.livePins(at: now).isEmpty } ?? true
    }

    private func expired(_ origin: Origin) -> HTTPTransportError {
        guard !update.isBehind else {
            return HTTPTransportError(
                .trustExpired,
                "Version \(update.reached) of the trust file was in force and cannot be read, so nothing is called.",
                suggestion: "Install the newest release of the app, or try again in an hour.")
        }
        let date = Date(timeIntervalSince1970: TimeInterval(now)).formatted(.iso8601)
        return HTTPTransportError(
            .trustExpired,
            "Version \(update.current.version) of the trust file has no valid pin for \(origin.host.text) any more; it "
                + "is taken to be \(date).",
            suggestion: "Set this device's clock if that is wrong. Else wait for a newer trust file, or update the app."
        )
    }
}

/// The trust file in force, for those who cannot wait.
package final class TrustInForce: Sendable {
    private let file: Locked<TrustFile?>
    private let hasVault = Locked(false)

    init(_ file: TrustFile) { self.file = Locked(file) }

    /// The vault was read.
    func settled() { hasVault.withLock { $0 = true } }

    /// Whether the vault was read: what it has may be later than what is in force before.
    package var isSettled: Bool { hasVault.withLock { $0 } }

    func set(_ file: TrustFile?) { self.file.withLock { $0 = file } }

    /// The version; `nil` when nothing is in force.
    package var version: Int? { file.withLock { $0?.version } }

    /// How calls are sealed; `nil` where the file does not say it.
    package var payload: TrustedPayload? { file.withLock { $0?.content.payload } }

    /// The keys that sign device configurations; none when nothing is in force.
    package var config: [ProtocolKey] { file.withLock { $0?.content.config ?? [] } }

    /// What counts as now, see ``TrustFile/now(_:)``.
    package func now(_ clock: Date) -> Int { file.withLock { $0?.now(clock) } ?? clock.wholeSeconds }

    /// What the file in force says; `nil` when nothing is in force.
    package var content: TrustContent? { file.withLock { $0?.content } }

    /// What happens when a probe finds something; `nil` when nothing is in force.
    package var controls: IntegrityControls? { file.withLock { $0?.content.controls.integrity } }

    /// Whose credential an origin gets; `nil` for one that is not named.
    package func kinds(of origin: Origin) -> Set<CallKind>? { file.withLock { $0?.kinds(of: origin) } }
}

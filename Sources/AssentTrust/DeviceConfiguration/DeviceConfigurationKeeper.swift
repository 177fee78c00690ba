package import AssentCore
package import AssentSigningProtocol
package import Foundation
import Logging

/// Keeps an app's device configuration: takes the last one out of the vault, asks the server for a newer one, and says
/// what is in force. ``DeviceConfigurationUpdate`` decides; this reads, asks and stores.
package actor DeviceConfigurationKeeper {
    /// How many seconds a process goes by the last answer.
    package static let interval = DeviceConfigurationContent.lifetime

    /// The same for who cannot do without an answer, where there was none yet.
    package static let urgentInterval = 5

    /// How many seconds a process waits for another one that asks.
    private static let patience: TimeInterval = 30

    private let app: ConfiguredApp
    /// Of the record in the vault.
    private let recordName: String
    private let trust: TrustInForce
    private let surroundings: KeeperSurroundings
    private let source: DeviceConfigurationSource
    private var update: DeviceConfigurationUpdate
    private var isLoaded = false
    private var asking: Task<Void, Never>?
    private var askedAt: Int?

    /// - Parameters:
    ///   - app: who reads it.
    ///   - trust: the trust file in force, whose keys sign it.
    ///   - issuer: the OAuth issuer, whose metadata says where it is.
    ///   - surroundings: vault, clock, and the pinned way to the server, below what seals: what it answers is signed.
    package init(for app: ConfiguredApp, trust: TrustInForce, issuer: String, in surroundings: KeeperSurroundings) {
        (self.app, self.trust, self.surroundings) = (app, trust, surroundings)
        recordName = DeviceConfigurationRecord.name(for: app.audience)
        source = DeviceConfigurationSource(issuer: issuer, app: app, transport: surroundings.network)
        update = DeviceConfigurationUpdate(for: app, keys: trust.config)
    }

    /// What is in force; the server is asked for it where that was not done for five minutes. When it cannot be asked,
    /// the last one counts.
    ///
    /// - Parameter deadline: until when the server is waited for; it is asked all the same after that.
    /// - Returns: the configuration; `nil` when none was ever told to this version of the app.
    /// - Throws: what the vault throws: a later one may be in it. `HTTPTransportError` `timedOut` at the deadline, or
    ///   `cancelled`.
    package func configuration(until deadline: Date? = nil) async throws -> DeviceConfigurationContent? {
        try await settle()
        try await wait(for: begin(), until: deadline)
        return update.current?.content
    }

    /// What a new PIN must be like, as ``configuration(until:)``; `nil` where that was never told.
    package func pinRules() async throws -> PasswordRules? { try await configuration()?.pin }

    /// The same without waiting for the server, where anything is known or it was asked before: what it answers then
    /// counts the next time. So a call is not made slower by it.
    package func known(until deadline: Date? = nil) async throws -> DeviceConfigurationContent? {
        try await settle()
        let asking = begin()
        if update.current == nil, askedAt == nil { try await wait(for: asking, until: deadline) }
        return update.current?.content
    }

    /// The same for what cannot be done without it: where nothing is known the server is asked again soon. It may have
    /// been out of reach the last time, and five minutes are long for a user who waits.
    private func needed(until deadline: Date?) async throws -> DeviceConfigurationContent? {
        try await settle()
        let interval = update.current == nil ? Self.urgentInterval : Self.interval
        try await wait(for: begin(after: interval), until: deadline)
        return update.current?.content
    }

    private func wait(for asking: Task<Void, Never>?, until deadline: Date?) async throws {
        guard let asking, await !surroundings.isOver(asking, by: deadline) else { return }
        throw KeeperSurroundings.unfinished("The server's device configuration")
    }

    /// Where the time comes from.
    package nonisolated var clock: any WallClock { surroundings.clock }

    /// Until when a call that begins now may wait.
    package nonisolated func deadline(of call: HTTPCall) -> Date { surroundings.deadline(of: call) }

    /// Waits until nothing is asked any more.
    package func finish() async { await asking?.value }

    /// Takes what the trust file in force and the vault have.
    private func settle() async throws {
        _ = update.on(.keys(trust.config), at: now)
        guard !isLoaded else { return }
        try await reload()
        isLoaded = true
    }

    /// Begins to ask where so many seconds have passed since the last time, and nobody does.
    private func begin(after interval: Int = DeviceConfigurationKeeper.interval) -> Task<Void, Never>? {
        if isDue(after: interval), asking == nil { asking = Task { await ask() } }
        return asking
    }

    /// What the app may do; the rest as ``configuration(until:)``.
    ///
    /// - Parameters:
    ///   - wishes: the app's own settings.
    ///   - waits: whether the server is waited for where it is asked, see ``known(until:)``.
    ///   - isNeeded: whether nothing can be done before the server has told something, so that it is asked again soon.
    ///   - deadline: until when it is waited for.
    /// - Returns: the decision; `nil` while no trust file is in force.
    /// - Throws: as ``configuration(until:)``.
    package func decision(
        _ wishes: DeviceDecision.Wishes, waits: Bool = true, isNeeded: Bool = false, until deadline: Date? = nil
    ) async throws -> DeviceDecision? {
        let configuration: DeviceConfigurationContent?
        if isNeeded {
            configuration = try await needed(until: deadline)
        } else {
            configuration = try await waits ? self.configuration(until: deadline) : known(until: deadline)
        }
        guard let content = trust.content else { return nil }
        return DeviceDecision(wishes, version: app.version, trust: content, configuration: configuration)
    }

    private var now: Int { surroundings.clock.now.wholeSeconds }

    /// A clock that was put back must not keep the server from being asked.
    private func isDue(after interval: Int) -> Bool { askedAt.map { now < $0 || now - $0 >= interval } ?? true }

    private func ask() async {
        defer { asking = nil }
        await surroundings.update("the device configuration", under: recordName, patience: Self.patience) {
            // Another process may have found a newer one.
            try await reload()
            await walk()
        }
        // Also after a failure: one that lasts must not be tried again with each call.
        askedAt = now
    }

    private func walk() async {
        guard case .ask(let tag) = update.on(.due, at: now) else { return }
        let answer = await source.answer(knowing: tag)
        switch update.on(.answered(answer), at: trust.now(surroundings.clock.now)) {
        case .keep(let document): await keep(document)
        case .rest(let refusal?):
            surroundings.logger.warning("a device configuration was refused", metadata: ["reason": "\(refusal)"])
        case .rest(nil), .nothing, .ask: break
        }
    }

    private func reload() async throws {
        guard let secret = try await surroundings.store.value(recordName)?.value,
            let record = DeviceConfigurationRecord(secret), record.audience == app.audience
        else { return }
        _ = update.on(.loaded(record.document, reached: record.version), at: now)
    }

    private func keep(_ document: DeviceConfiguration) async {
        let record = DeviceConfigurationRecord(
            audience: app.audience, version: update.reached, document: document.compact)
        await surroundings.keep(record.secret, as: recordName, of: "the device configuration")
    }
}

/// What the vault keeps: the last document, and the highest version that was in force, readable without it.
struct DeviceConfigurationRecord: Sendable, Equatable {
    /// The name in the vault, and of the lease under which it changes. Each audience has a record of its own: that of
    /// another app or environment must not take away how far this one has come.
    static func name(for audience: String) -> String { "device-config/" + RecordName.part(of: audience) }

    let audience: String
    let version: Int
    let document: String

    init(audience: String, version: Int, document: String) {
        (self.audience, self.version, self.document) = (audience, version, document)
    }

    /// What was stored; `nil` when it is not a record.
    init?(_ secret: Secret) {
        let limits = JSONLimits(bytes: DeviceConfigurationContent.limit * 2, depth: 2, values: 16)
        guard let object = try? JSONValue.parse(secret.revealBytes(), limits: limits).object,
            let audience = object["audience"]?.string, let document = object["document"]?.string,
            let version = object["version"]?.integer.flatMap({ Int(exactly: $0) }), version > 0
        else { return nil }
        self.init(audience: audience, version: version, document: document)
    }

    var secret: Secret {
        let object: JSONObject = [
            "v": 1, "audience": .string(audience), "version": .integer(version), "document": .string(document),
        ]
        return Secret(bytes: JSONValue.object(object).serializedBytes())
    }
}

package import AssentCore
package import AssentSigningProtocol
import Foundation
import HTTPTypes
package import Logging

/// Keeps an app's device configuration: takes the last one out of the vault, asks the server for a newer one, and says
/// what is in force. ``DeviceConfigurationUpdate`` decides; this reads, asks and stores.
package actor DeviceConfigurationKeeper {
    /// What a keeper works with.
    package struct Surroundings: Sendable {
        let store: any SecretStore
        let transport: any HTTPTransport
        let clock: any WallClock
        let logger: Logger

        /// - Parameters:
        ///   - store: the vault.
        ///   - transport: the pinned way to the server, below what seals: what it answers is signed.
        ///   - clock: where the time comes from.
        ///   - logger: is told what was refused.
        package init(
            store: any SecretStore, transport: any HTTPTransport, clock: any WallClock, logger: Logger
        ) {
            (self.store, self.transport, self.clock, self.logger) = (store, transport, clock, logger)
        }
    }

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
    private let surroundings: Surroundings
    private let source: DeviceConfigurationSource
    private var update: DeviceConfigurationUpdate
    private var isLoaded = false
    private var asking: Task<Void, Never>?
    private var askedAt: Int?

    /// - Parameters:
    ///   - app: who reads it.
    ///   - trust: the trust file in force, whose keys sign it.
    ///   - issuer: the OAuth issuer, whose metadata says where it is.
    ///   - surroundings: vault, network and clock.
    package init(for app: ConfiguredApp, trust: TrustInForce, issuer: String, in surroundings: Surroundings) {
        (self.app, self.trust, self.surroundings) = (app, trust, surroundings)
        recordName = DeviceConfigurationRecord.name(for: app.audience)
        source = DeviceConfigurationSource(issuer: issuer, app: app, transport: surroundings.transport)
        update = DeviceConfigurationUpdate(for: app, keys: trust.config)
    }

    /// What is in force; the server is asked for it where that was not done for five minutes. When it cannot be asked,
    /// the last one counts.
    ///
    /// - Returns: the configuration; `nil` when none was ever told to this version of the app.
    /// - Throws: what the vault throws: a later one may be in it.
    package func configuration() async throws -> DeviceConfigurationContent? {
        try await settle()
        await begin()?.value
        return update.current?.content
    }

    /// What a new PIN must be like, as ``configuration()``; `nil` where that was never told.
    package func pinRules() async throws -> PasswordRules? { try await configuration()?.pin }

    /// The same without waiting for the server, where anything is known or it was asked before: what it answers then
    /// counts the next time. So a call is not made slower by it.
    package func known() async throws -> DeviceConfigurationContent? {
        try await settle()
        let asking = begin()
        if update.current == nil, askedAt == nil { await asking?.value }
        return update.current?.content
    }

    /// The same for what cannot be done without it: where nothing is known the server is asked again soon. It may have
    /// been out of reach the last time, and five minutes are long for a user who waits.
    private func needed() async throws -> DeviceConfigurationContent? {
        try await settle()
        await begin(after: update.current == nil ? Self.urgentInterval : Self.interval)?.value
        return update.current?.content
    }

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

    /// What the app may do; the rest as ``configuration()``.
    ///
    /// - Parameters:
    ///   - wishes: the app's own settings.
    ///   - waits: whether the server is waited for where it is asked, see ``known()``.
    ///   - isNeeded: whether nothing can be done before the server has told something, so that it is asked again soon.
    /// - Returns: the decision; `nil` while no trust file is in force.
    /// - Throws: what the vault throws.
    package func decision(
        _ wishes: DeviceDecision.Wishes, waits: Bool = true, isNeeded: Bool = false
    ) async throws -> DeviceDecision? {
        let configuration: DeviceConfigurationContent?
        if isNeeded {
            configuration = try await needed()
        } else {
            configuration = try await waits ? self.configuration() : known()
        }
        guard let content = trust.content else { return nil }
        return DeviceDecision(wishes, version: app.version, trust: content, configuration: configuration)
    }

    private var now: Int { surroundings.clock.now.wholeSeconds }

    /// A clock that was put back must not keep the server from being asked.
    private func isDue(after interval: Int) -> Bool { askedAt.map { now < $0 || now - $0 >= interval } ?? true }

    private func ask() async {
        defer { asking = nil }
        do {
            let deadline = surroundings.clock.now.addingTimeInterval(Self.patience)
            try await surroundings.store.withExclusiveAccess(recordName, deadline: deadline) {
                // Another process may have found a newer one.
                try await reload()
                await walk()
            }
        } catch {
            surroundings.logger.warning(
                "the device configuration was not updated", metadata: ["reason": "\(type(of: error))"])
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
        do {
            try await surroundings.store.update(
                recordName, to: record.secret, expected: .any)
        } catch {
            surroundings.logger.warning(
                "the device configuration is not stored, and holds for this process only",
                metadata: ["reason": "\(type(of: error))"])
        }
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

/// Asks the server: first the issuer's metadata, which says where, then for the document.
struct DeviceConfigurationSource: Sendable {
    private static let limits = HTTPLimits(
        connect: .seconds(5), read: .seconds(5), total: .seconds(10), replyBytes: DeviceConfigurationContent.limit)

    let issuer: String
    let app: ConfiguredApp
    let transport: any HTTPTransport

    func answer(knowing tag: String?) async -> DeviceConfigurationAnswer {
        do {
            let place = IssuerEndpoint("assent_device_config_endpoint", of: issuer)
            guard let endpoint = try await place.find(over: transport, limits: Self.limits) else { return .failed }
            var fields: HTTPFields = [:]
            fields[.ifNoneMatch] = tag
            let reply = try await transport.send(
                HTTPCall(.get, url: question(endpoint), headerFields: fields, limits: Self.limits))
            switch reply.status {
            case 200:
                let bytes = try await reply.body.collect(upTo: DeviceConfigurationContent.limit)
                guard let text = String(validating: bytes, as: UTF8.self) else { return .failed }
                return .document(text, tag: reply.response.headerFields[.eTag])
            case 304: return .unchanged
            default: return .failed
            }
        } catch {
            return .failed
        }
    }

    private func question(_ endpoint: String) -> String {
        let parts = app.audience.split(separator: "/").map(String.init)
        let items = [("app", parts.first ?? ""), ("version", app.version), ("platform", parts.dropFirst().first ?? "")]
        return items.reduce(endpoint) { URLText.appending($1.0, $1.1, to: $0) }
    }
}

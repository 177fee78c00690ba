import AssentCore
import AssentJOSE
import Foundation
import Logging

/// Registers this installation of an app at the authorization server, once for all processes that share the store,
/// keeps the registration as the configuration says, and ends it (RFC 7591, RFC 7592).
///
/// ```swift
/// configuration.registration = RegistrationConfiguration(keys: keys, initialAccessToken: token)
/// let assent = try Assent(configuration)
/// let clientID = try await assent.registration?.register().clientID
/// ```
///
/// Nobody needs to call ``register()``: the first request for tokens, or the first sign-in in a browser, does. The key
/// is made under the store's lease, and what the server gave is stored before anything uses it. A registration that
/// the server has ended, or whose key is gone, is replaced by a new one at the next sign-in. One that was asked for
/// with another redirect URI, other scopes or another version than the configuration has now is changed before the next
/// sign-in; for another version also before tokens are renewed.
public actor AppRegistration {
    private let configuration: TokenConfiguration
    private let settings: RegistrationConfiguration
    private let storage: RegistrationStorage
    private let wire: RegistrationWire
    let clock: any WallClock
    let random: any RandomSource
    private let logger: Logger
    private let flight = SingleFlight<RegisteredInstance>()
    private let endings = Locked<[@Sendable () -> Void]>([])

    init(
        _ configuration: TokenConfiguration, _ settings: RegistrationConfiguration, store: TokenStorage,
        wire: RegistrationWire, random: any RandomSource, logger: Logger
    ) {
        self.configuration = configuration
        self.settings = settings
        storage = RegistrationStorage(store)
        self.wire = wire
        clock = wire.proofs.clock
        self.random = random
        self.logger = logger
    }

    /// The registration that is stored; `nil` when there is none. Nothing is sent, and no key is looked for.
    ///
    /// - Throws: ``TokenError`` with code `storageFailed`.
    public func current() async throws -> RegisteredInstance? {
        guard case .done(let instance) = try await storage.load() else { return nil }
        return instance
    }

    /// This installation as a client of its own: as it is stored, or changed or registered now.
    ///
    /// However many tasks and processes call, one of them registers. A request whose answer was lost is not repeated by
    /// itself: the next call makes another key, and the client that the server may have registered is one that nobody
    /// can use. A change whose answer was lost is sent again by the next call.
    ///
    /// - Returns: the registration, stored.
    /// - Throws: ``TokenError``: `registrationRefused` with the server's `oauthError`, and then a registration that was
    ///   to be changed is as it was; `registrationUnknown` when the server may have registered a client, or changed the
    ///   registration; `clientKeyUnavailable`; `unusableEndpoint` when the server registers nobody; `malformedReply`,
    ///   `transport`, `storageFailed` and `busy`; `CancellationError`.
    @discardableResult
    public func register() async throws -> RegisteredInstance {
        if let instance = try await usable(try await storage.load()), isAsAsked(instance) { return instance }
        return try await flight.joinOrStart { try await self.registerAlone() }
    }

    /// Ends the registration at the server, with all that the server gave to this installation, then forgets it here
    /// and destroys its key. Sign the user out before: afterwards this client cannot revoke anything any more.
    ///
    /// Nothing happens when nothing is registered. A registration that the server does not know any more is forgotten.
    ///
    /// - Throws: ``TokenError``: what kept the server from ending it, and then nothing is forgotten: the call may be
    ///   repeated, also where the answer was lost. With `clientKeyMissing` nobody can prove any more that the
    ///   registration is this installation's: the server's operator can end it, and ``forget()`` forgets it here.
    public func unregister() async throws {
        try await exclusively {
            guard let record = try await storage.load() else { return }
            if case .done(let instance) = record {
                try await wire.end(instance, key: try await key(of: instance))
            }
            try await forget(record)
        }
    }

    /// Forgets the registration here and destroys its key. The server is not told.
    ///
    /// - Throws: ``TokenError``.
    public func forget() async throws {
        try await exclusively {
            if let record = try await storage.load() { try await forget(record) }
        }
    }

    // MARK: For token requests

    /// Runs `body` whenever a registration is forgotten here: what hangs on it in memory ends with it.
    nonisolated func whenEnded(_ body: @escaping @Sendable () -> Void) { endings.withLock { $0.append(body) } }

    func identity() async throws -> TokenClient { identity(of: try await register()) }

    func knownIdentity() async throws -> TokenClient {
        guard let instance = try await current() else {
            throw TokenError(.notRegistered, "This installation is not registered at the provider.")
        }
        return identity(of: instance)
    }

    /// Which client renews what it has. An app that was updated says so before: its old version may be served no more.
    /// Where the server does not take that, the renewal goes on as the client that is stored.
    func renewingIdentity() async throws -> TokenClient {
        guard let instance = try await current(), isOfOtherVersion(instance) else { return try await knownIdentity() }
        do {
            try await exclusively {
                guard case .done(let stored) = try await storage.load(), isOfOtherVersion(stored) else { return }
                _ = try await change(stored)
            }
        } catch let error as TokenError {
            logger.warning("the server was not told of the app's version", metadata: ["reason": "\(error.code)"])
        }
        return try await knownIdentity()
    }

    /// Whether this installation is not that client any more. A registration that the server has ended is forgotten.
    /// When nobody can say, it is as it was.
    func isGone(_ clientID: String) async -> Bool {
        do {
            return try await exclusively {
                let record = try await storage.load()
                guard case .done(let instance) = record, instance.clientID == clientID else { return true }
                guard try await wire.hasEnded(instance, key: try await key(of: instance)) else { return false }
                try await forgetEnded(instance)
                return true
            }
        } catch {
            return false
        }
    }

    /// Whether the server still has the registration; `nil` when nobody can say. Nothing is forgotten, and nobody is
    /// waited for: who asks may have the lease.
    package func isAlive() async -> Bool? {
        do {
            guard case .done(let instance) = try await storage.load() else { return false }
            return try await !wire.hasEnded(instance, key: try await key(of: instance))
        } catch {
            return nil
        }
    }

    private func identity(of instance: RegisteredInstance) -> TokenClient {
        TokenClient(id: instance.clientID, key: place(instance.keyName), isRegistered: true)
    }

    // MARK: Registering

    private func registerAlone() async throws -> RegisteredInstance {
        try await exclusively {
            // Somebody else, in another process, may have been faster.
            var record = try await storage.load()
            if let instance = try await usable(record) {
                if isAsAsked(instance) { return instance }
                if let changed = try await change(instance) { return changed }
                record = nil
            }
            guard ClientKey.algorithms.contains(settings.algorithm) else {
                throw TokenError(
                    .invalidConfiguration, "\(settings.algorithm) cannot sign a client's assertions.",
                    suggestion: "Use ES256, PS256 or EdDSA.")
            }
            try await admit()
            // Before anything is noted: when the server cannot even be described, nothing was attempted.
            let endpoint = try await wire.endpoint()
            let (name, key) = try await key(instead: record)
            return try await register(key, named: name, at: endpoint)
        }
    }

    private func admit() async throws {
        do throws(HTTPTransportError) {
            try await settings.admit?()
        } catch {
            throw TokenError(.transport, error.detail, transportError: error)
        }
    }

    private func register(_ key: ClientKey, named name: String, at endpoint: String) async throws -> RegisteredInstance
    {
        try await storage.save(.begun(key: name, isSent: true))
        let object: JSONObject
        do {
            object = try await wire.register(key, named: name, at: endpoint, settings, configuration)
        } catch let error as TokenError
            where !error.mayHaveRegistered(hadToken: settings.initialAccessToken != nil)
        {
            try await storage.save(.begun(key: name, isSent: false))
            throw error
        }
        let instance = try RegisteredInstance(
            object,
            .init(
                keyName: name, keyThumbprint: key.publicKey.thumbprint, asked: .init(configuration),
                endpoint: endpoint))
        do {
            try await storage.save(.done(instance))
        } catch {
            // Nobody will ever use it.
            try? await wire.end(instance, key: key)
            throw error
        }
        logger.info("this installation was registered", metadata: ["client": "\(instance.clientID)"])
        return instance
    }

    /// Whether the configuration asks for the same as when this registration was stored. Where the record does not say,
    /// nobody knows, and the server is told.
    private func isAsAsked(_ instance: RegisteredInstance) -> Bool {
        instance.asked?.isSame(as: .init(configuration)) ?? false
    }

    /// Whether the server has, or may have, another version than the configuration.
    private func isOfOtherVersion(_ instance: RegisteredInstance) -> Bool {
        guard let asked = instance.asked else { return settings.softwareVersion != nil }
        return asked.version != settings.softwareVersion
    }

    /// Has the server change a registration to what the configuration asks for now.
    ///
    /// - Returns: the registration as it is then, stored; `nil` when the server has ended it, and then it is forgotten.
    private func change(_ instance: RegisteredInstance) async throws -> RegisteredInstance? {
        let key = try await key(of: instance)
        // Until the server has answered, nobody knows what it has: whatever the configuration says at the next try,
        // also the same as before, it is to be told.
        var unsure = instance
        unsure.asked = nil
        try await storage.save(.done(unsure))
        let answer: JSONObject?
        do {
            answer = try await wire.update(instance, key: key, settings, configuration)
        } catch let error as TokenError where error.code != .registrationUnknown {
            try await storage.save(.done(instance))
            throw error
        }
        guard let object = answer else {
            try await forgetEnded(instance)
            return nil
        }
        let changed = try RegisteredInstance(
            object,
            .init(
                clientID: instance.clientID, keyName: instance.keyName, keyThumbprint: instance.keyThumbprint,
                asked: .init(configuration), endpoint: instance.address))
        try await storage.save(.done(changed))
        logger.info("the registration was changed", metadata: ["client": "\(changed.clientID)"])
        return changed
    }

    /// The key to register: the one that was made for an attempt that came to nothing, or a new one.
    private func key(instead record: RegistrationRecord?) async throws -> (name: String, key: ClientKey) {
        switch record {
        case nil: break
        case .begun(let name, isSent: false):
            if let key = try await clientKeyErrors(name, { try await self.keptKey(named: name) }) { return (name, key) }
        case .begun(let name, isSent: true):
            try await clientKeyErrors(name) { try await self.settings.keys.removeKey(named: self.place(name).fullName) }
        case .done(let instance):
            // It is gone; what is left of it may be in the way of nobody.
            try? await settings.keys.removeKey(named: place(instance.keyName).fullName)
        }
        let name = storage.newKeyName(random: random)
        try await storage.save(.begun(key: name, isSent: false))
        if case .done = record { endWhatHangsOnIt() }
        return (name, try await clientKeyErrors(name) { try await self.make(name) })
    }

    /// The key of an earlier attempt, made if that attempt ended before it was; `nil` when it was destroyed.
    private func keptKey(named name: String) async throws -> ClientKey? {
        do {
            if let key = try await settings.keys.signingKey(named: place(name).fullName) {
                return try ClientKey(key, name: name)
            }
            return try await make(name)
        } catch let error as KeyProviderError where error.code == .keyLost {
            try? await settings.keys.removeKey(named: place(name).fullName)
            return nil
        }
    }

    private func make(_ name: String) async throws -> ClientKey {
        try await ClientKey.make(named: name, algorithm: settings.algorithm, at: settings.keys)
    }

    // MARK: What is stored

    /// The registration of a record; `nil` when there is none, or when its key is gone for good.
    private func usable(_ record: RegistrationRecord?) async throws -> RegisteredInstance? {
        guard case .done(let instance) = record else { return nil }
        do {
            _ = try await key(of: instance)
            return instance
        } catch let error as TokenError where error.code == .clientKeyMissing {
            return nil
        }
    }

    /// The key of a registration.
    ///
    /// - Throws: ``TokenError``: `clientKeyMissing` when it is gone, or another is in its place.
    func key(of instance: RegisteredInstance) async throws -> ClientKey {
        let key = try await ClientKey.find(named: instance.keyName, at: settings.keys)
        guard key.publicKey.thumbprint == instance.keyThumbprint else {
            throw TokenError(
                .clientKeyMissing, "The key of this installation is gone: another one is in its place.")
        }
        return key
    }

    private func forgetEnded(_ instance: RegisteredInstance) async throws {
        logger.notice("the server has ended the registration", metadata: ["client": "\(instance.clientID)"])
        try await forget(.done(instance))
    }

    /// The key first: what is left, should that fail or this end in between, is a record that names it and that is no
    /// registration.
    private func forget(_ record: RegistrationRecord?) async throws {
        let name: String
        switch record {
        case nil: return
        case .begun(let key, _): name = key
        case .done(let instance):
            name = instance.keyName
            try await storage.save(.begun(key: name, isSent: true))
            endWhatHangsOnIt()
        }
        try await clientKeyErrors(name) { try await self.settings.keys.removeKey(named: self.place(name).fullName) }
        try await storage.save(nil)
    }

    /// Once the registration is stored no more: what asks again then finds none.
    private func endWhatHangsOnIt() {
        for end in endings.withLock({ Array($0) }) { end() }
    }

    private func place(_ name: String) -> ClientKey.Place { ClientKey.Place(provider: settings.keys, name: name) }

    private func exclusively<Result>(_ body: () async throws -> Result) async throws -> Result {
        try await storage.exclusively(until: clock.now.addingTimeInterval(configuration.patience), body)
    }
}

/// Runs `body`, and throws what a key provider throws as a ``TokenError`` about this client key.
private func clientKeyErrors<Result>(_ name: String, _ body: () async throws -> Result) async throws -> Result {
    do {
        return try await body()
    } catch let error as KeyProviderError {
        throw TokenError(clientKey: name, error)
    }
}

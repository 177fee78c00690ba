package import AssentSigningProtocol

/// How an app gets the newest device configuration (`docs/device-configuration.md`, "Update"): a value that takes an
/// event and returns what is to be done next, without network, vault or clock.
///
/// Every event is allowed at any time: one that makes no sense changes nothing.
package struct DeviceConfigurationUpdate: Sendable {
    package enum Event: Sendable {
        /// The vault was read: the document and the highest version that was in force for this audience.
        case loaded(String?, reached: Int)
        /// Another trust file is in force, with these keys.
        case keys([ProtocolKey])
        /// It is time to ask.
        case due
        case answered(DeviceConfigurationAnswer)
    }

    package enum Action: Hashable, Sendable {
        case nothing
        /// Ask; with this tag in `If-None-Match`, where there is one.
        case ask(tag: String?)
        /// Put the document in force into the vault, with its version.
        case keep(DeviceConfiguration)
        /// The question is answered, and nothing is new. The reason, when the answer was refused.
        case rest(TrustFileError?)
    }

    /// What is in force; `nil` while nothing is that a valid key has signed for this version of the app.
    package private(set) var current: DeviceConfiguration?

    /// The highest version that was in force; 0 when none was. No older one is taken, for whatever version of the app.
    package private(set) var reached = 0

    private let app: ConfiguredApp
    private var keys: [ProtocolKey]
    private var tag: String?
    private var isAsking = false

    /// - Parameters:
    ///   - app: who reads it.
    ///   - keys: those that the trust file in force names in `config`.
    package init(for app: ConfiguredApp, keys: [ProtocolKey]) { (self.app, self.keys) = (app, keys) }

    /// Takes an event.
    ///
    /// - Parameters:
    ///   - event: what happened.
    ///   - now: what counts as now, in seconds since 1970, see ``TrustFile/now(_:)``.
    /// - Returns: what is to be done next.
    package mutating func on(_ event: Event, at now: Int) -> Action {
        switch event {
        case .loaded(let text, let reached): load(text, reached)
        case .keys(let keys): change(keys)
        case .due: begin()
        case .answered(let answer): take(answer, now)
        }
    }

    /// What was stored was fresh when it came: it stays in force, however old it is.
    private mutating func load(_ text: String?, _ reached: Int) -> Action {
        self.reached = max(self.reached, reached)
        if let text, text != current?.compact,
            let stored = try? DeviceConfiguration(text, keys: keys, for: app), isNext(stored)
        {
            (current, self.reached, tag) = (stored, stored.content.version, nil)
        }
        return .nothing
    }

    private mutating func change(_ keys: [ProtocolKey]) -> Action {
        // Each call says so, and a signature need not be verified for each.
        guard keys != self.keys else { return .nothing }
        self.keys = keys
        // The key that has signed it may have been withdrawn.
        if let known = current, (try? DeviceConfiguration(known.compact, keys: keys, for: app)) == nil {
            (current, tag) = (nil, nil)
        }
        return .nothing
    }

    private mutating func begin() -> Action {
        guard !isAsking else { return .nothing }
        isAsking = true
        return .ask(tag: current == nil ? nil : tag)
    }

    private mutating func take(_ answer: DeviceConfigurationAnswer, _ now: Int) -> Action {
        guard isAsking else { return .nothing }
        isAsking = false
        guard case .document(let text, let tag) = answer else { return .rest(nil) }
        do throws(TrustFileError) {
            let next = try DeviceConfiguration(text, keys: keys, for: app)
            guard next.isFresh(at: now) else {
                throw TrustFileError(.wrongTime, "The device configuration is not of now. Look at the device's clock.")
            }
            guard next.content.version <= now + DeviceConfiguration.lead else {
                throw TrustFileError(.wrongVersion, "The version of the device configuration is ahead of the time.")
            }
            guard isNext(next) else {
                throw TrustFileError(
                    .wrongVersion, "Version \(reached) of the device configuration was in force, and this is not newer."
                )
            }
            (current, reached, self.tag) = (next, next.content.version, tag)
            return .keep(next)
        } catch {
            return .rest(error)
        }
    }

    private func isNext(_ next: DeviceConfiguration) -> Bool {
        guard next.content.version >= reached else { return false }
        guard let content = current?.content, content.version == next.content.version else { return true }
        // Nobody knows which of two of one second is newer: what takes away is never taken back by the other.
        return next.content.issuedAt == content.issuedAt
            ? next.content.allowsNoMore(than: content) : next.content.issuedAt > content.issuedAt
    }
}

/// What the server said.
package enum DeviceConfigurationAnswer: Sendable {
    /// A document, and the value of `ETag`.
    case document(String, tag: String?)
    /// It is what the app has (304).
    case unchanged
    /// It did not answer, or not as it should.
    case failed
}

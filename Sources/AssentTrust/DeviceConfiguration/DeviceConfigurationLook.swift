package import AssentCore
package import AssentSigningProtocol
package import Foundation

/// Looks at what a server tells an app now, as the app would judge it. Nothing is taken: what is in force stays.
package struct DeviceConfigurationLook: Sendable {
    /// What came of a look.
    package enum Finding: Sendable {
        /// The app would take this.
        case told(DeviceConfigurationContent)
        /// The realm tells nothing, or has no such app.
        case untold
        /// The server did not answer, or not as it should: why, in a sentence.
        case unreachable(String)
        /// The app would not take it.
        case refused(TrustFileError)
    }

    /// What an app has kept.
    package struct Stored: Sendable, Hashable {
        /// The highest version that was in force.
        package let version: Int
        /// The last document.
        let document: String
    }

    private let app: ConfiguredApp
    private let trust: TrustFile
    private let transport: any HTTPTransport

    /// - Parameters:
    ///   - app: who would read it.
    ///   - trust: the trust file, with the keys that sign it and the issuer that is asked.
    ///   - transport: the pinned way to the issuer.
    package init(for app: ConfiguredApp, trust: TrustFile, over transport: any HTTPTransport) {
        (self.app, self.trust, self.transport) = (app, trust, transport)
    }

    /// What an app has kept in its vault; `nil` where it has nothing, or nothing that is a record.
    ///
    /// - Throws: what the vault throws.
    package static func stored(for audience: String, in store: any SecretStore) async throws -> Stored? {
        guard let secret = try await store.value(DeviceConfigurationRecord.name(for: audience))?.value,
            let record = DeviceConfigurationRecord(secret), record.audience == audience
        else { return nil }
        return Stored(version: record.version, document: record.document)
    }

    /// Asks once, for a limited time.
    ///
    /// - Parameters:
    ///   - stored: what the app has kept: nothing older is taken.
    ///   - now: the time.
    /// - Returns: what came of it.
    package func finding(knowing stored: Stored?, at now: Date) async -> Finding {
        var update = DeviceConfigurationUpdate(for: app, keys: trust.content.config)
        let time = trust.now(now)
        _ = update.on(.loaded(stored?.document, reached: stored?.version ?? 0), at: time)
        _ = update.on(.due, at: time)
        let source = DeviceConfigurationSource(issuer: trust.content.issuer, app: app, transport: transport)
        let answer: DeviceConfigurationAnswer
        do {
            switch try await source.reply(knowing: nil) {
            case .answer(let given): answer = given
            case .untold: return .untold
            case .unusable(let status): return .unreachable("It answers with status \(status).")
            }
        } catch {
            return .unreachable(error.explanationOrType)
        }
        switch update.on(.answered(answer), at: time) {
        case .keep(let document): return .told(document.content)
        case .rest(let refusal?): return .refused(refusal)
        case .rest(nil), .nothing, .ask: return .unreachable("It answers without a document.")
        }
    }
}

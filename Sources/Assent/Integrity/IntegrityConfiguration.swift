public import AssentCore
import AssentPlatform
import AssentTokens
import AssentTrust
import Foundation

extension Assent {
    /// What the app looks for in its own process before each call, and what happens when something is found. By default
    /// findings are reported, by one warning each of ``Configuration/logger``, and calls leave.
    ///
    /// ```swift
    /// configuration.integrity.controls = .init(debugger: .refuse, preload: .refuse, rooted: .report)
    /// configuration.integrity.allowedPreloads = ["/usr/lib/libjemalloc.so.2"]
    /// ```
    ///
    /// Where there is a trust file (``Configuration/trust``), its `controls` hold as well: of both, the stricter one.
    public struct Integrity: Sendable {
        /// What happens for each kind of finding.
        public var controls = IntegrityControls()

        /// The libraries that may be loaded before the program's own, each written as in `LD_PRELOAD`.
        public var allowedPreloads: Set<String> = []

        /// Probes in the place of this platform's, for tests and for an app that has more of them; `nil` for this
        /// platform's. With a trust file that is not for development they cannot be replaced.
        public var probes: [any IntegrityProbe]?

        /// Whether the server is told once, by a call of its own, what the probes have found, where its metadata has
        /// `assent_reports_endpoint`: which kinds, and no more.
        public var tellsServer = true

        /// The default.
        public init() {}
    }
}

extension Assent.Configuration {
    /// What asks the probes; they are asked here a first time, for the report.
    ///
    /// - Throws: `TokenError` with code `invalidConfiguration`, see ``Assent/Integrity/probes``.
    func integrityGuard(_ trustInForce: TrustInForce?, reporter: IntegrityReporter?) throws -> IntegrityGuard {
        if let trust, !trust.content.development, integrity.probes != nil {
            throw TokenError(
                .invalidConfiguration, "The trust file is not for development, so its probes cannot be replaced.",
                suggestion: "Leave integrity.probes out, or sign a trust file with development: true.")
        }
        let vaults = [vault, deviceVault].compactMap { vault -> String? in
            guard case .file(let directory, _, _) = vault else { return nil }
            return directory.path(percentEncoded: false)
        }
        let shipped = trust?.content.controls.integrity
        let made = IntegrityGuard(
            probes: integrity.probes
                ?? IntegrityProbes.platform(vaults: vaults, allowing: integrity.allowedPreloads),
            controls: { [own = integrity.controls] in
                (trustInForce?.controls ?? shipped).map(own.tightened(by:)) ?? own
            }, reporter: reporter, clock: clock, logger: logger)
        made.examineAtStart()
        return made
    }
}

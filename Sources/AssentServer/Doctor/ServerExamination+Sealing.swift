import AssentConfiguration
package import AssentCore
package import AssentEngine
import AssentStore

/// Versions of apps whose calls must be sealed.
extension ServerExamination {
    /// What is read for ``sealing(_:_:)``: nothing where no version must.
    static func sealingReads(_ configuration: ServerConfiguration, _ clock: any WallClock) -> [SQLStatement] {
        configuration.sealedVersions.warning == nil ? [] : [PayloadKeys.counting(at: clock.epochSeconds)]
    }

    /// A problem where there is no key that such calls could be sealed with.
    static func sealing(_ configuration: ServerConfiguration, _ rows: [SQLRow]?) -> [Diagnosis] {
        guard let warning = configuration.sealedVersions.warning, let rows,
            (try? PayloadKeys.isEmpty(rows)) == true
        else { return [] }
        return [Diagnosis(.problem, warning)]
    }

    /// The static keys of payload encryption that a server's database has; `nil` where it cannot be read, of which
    /// ``findings(file:clock:)`` says why. A database that is not there yet has none.
    package static func payloadKeys(
        _ configuration: ServerConfiguration, clock: any WallClock
    ) async -> [PayloadKeys.Listed]? {
        guard hasDatabase(configuration) else { return [] }
        guard let found = try? await examined(configuration, clock: clock, reading: [PayloadKeys.listing]) else {
            return nil
        }
        if found.schema == .missing { return [] }
        return found.rows.first.flatMap { try? PayloadKeys.listed($0) }
    }
}

import AssentConfiguration
import AssentCore
import AssentEngine
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
}

package import AssentStore

/// Which version of an app's device configuration the nodes of a database tell.
package struct ServedDeviceConfiguration: Sendable, Hashable {
    package let realm: String
    package let app: String
    package let version: Int64

    /// ``DeviceConfigurations/digest(of:_:pin:)`` of what it says.
    package let digest: String

    /// How many seconds a version may be ahead of the time: no app takes one that is further
    /// (docs/device-configuration.md, "Update").
    package static let lead: Int64 = 86_400

    /// The statement that reads those of a database, for ``init(_:)``.
    package static let reading = SQLStatement.read(
        "SELECT realm, app, version, digest FROM device_configs ORDER BY realm, app")

    /// A row of ``reading``.
    ///
    /// - Throws: ``StoreError``.
    package init(_ row: SQLRow) throws {
        (realm, app) = (try row.text("realm"), try row.text("app"))
        (version, digest) = (try row.integer("version"), try row.text("digest"))
    }
}

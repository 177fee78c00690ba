extension Migration {
    /// Which version of each app's device configuration is served, and the hash of what it says.
    static let deviceConfigs = Migration(
        "device configurations",
        [
            """
            CREATE TABLE device_configs (
                realm TEXT NOT NULL,
                app TEXT NOT NULL,
                version BIGINT NOT NULL,
                digest TEXT NOT NULL,
                PRIMARY KEY (realm, app))
            """
        ])
}

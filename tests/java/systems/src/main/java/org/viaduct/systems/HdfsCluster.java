/* SPDX-License-Identifier: BSD-2-Clause */
package org.viaduct.systems;

import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** A name node and a data node in one process, until standard input ends. */
public final class HdfsCluster {
  private HdfsCluster() {
  }

  /**
   * Prints the name node's port when the cluster serves.
   *
   * @param args the folder of its files
   * @throws Exception if the cluster does not start
   */
  public static void main(String[] args) throws Exception {
    Configuration conf = new HdfsConfiguration();
    conf.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, new File(args[0]).getAbsolutePath());
    conf.setLong("dfs.blocksize", 64L << 20);
    try (MiniDFSCluster cluster = new MiniDFSCluster.Builder(conf).numDataNodes(1).build()) {
      cluster.waitActive();
      System.out.println("port " + cluster.getNameNodePort());
      System.out.flush();
      while (System.in.read() >= 0) {
        // Wait for the end of the input.
      }
    }
    Counts.write();
    System.exit(0);
  }
}
